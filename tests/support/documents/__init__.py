"""The documentation as tests see it: its blocks of code, and pages that are written from the tests.

Start in `pages`; `clients_page` writes docs/clients.md.
"""
