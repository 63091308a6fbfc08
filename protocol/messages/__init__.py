"""Every message of the protocol, one family a module, each declared once for all its versions.

Attribute names are Kafka's field names in snake case; nested structs are named after their field.
A field that a version does not have reads as its default and is left out when written.
"""
