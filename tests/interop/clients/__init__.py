"""The same few verbs for each stock Python client and for kcat.

`produce` sends records in one of three styles and returns what the broker said of each;
`read` returns everything a topic holds, without a group. `record` has the values they share,
`members` the group member that runs in a process of its own.
"""
