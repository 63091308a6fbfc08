"""Access control lists: filters over them, an index of them, and the decisions that follow.

Pure: the lists are handed in by `broker.metadata.acls`, which has them from the metadata store.
Start with `acl_authorizer`.
"""
