"""The same few verbs for each stock Python client and for kcat, and tests of what clients do.

`produce` sends records in one of three styles and returns what the broker said of each;
`read` returns everything a topic holds, without a group. `record` has the values they share.
"""
