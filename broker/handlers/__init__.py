"""One module per family of requests, with the same stem as `protocol.messages`.

A handler is a function `(context, request) -> response | Deferred | None`, registered with
`broker.routing.handles`. `broker.handlers.all_handlers` imports them all.
"""
