"""Records that wait in a log until they are delivered: appended, found again, kept by retention.

When they are delivered is for the broker (`broker.delivery`). Start in `delaying_appends`.
"""
