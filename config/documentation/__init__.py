"""Documentation of the rows: for DescribeConfigs, and for `docs/configuration.md`.

Start in `docstrings`; `python -m config.documentation.reference FILE` writes the page.
"""
