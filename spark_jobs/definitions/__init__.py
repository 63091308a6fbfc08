"""Definitions of topics' records: TOML files, and the expressions that are made from them."""
