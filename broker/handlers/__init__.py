"""Handlers of requests, one module per family, in packages by subject.

A handler is a function `(context, request) -> response | Deferred | None`, registered with
`broker.requests.api_table.handles`. `broker.handlers.all_handlers` lists the modules.
"""
