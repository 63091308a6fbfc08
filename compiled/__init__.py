"""The compiled build: hot modules as machine code, built from the same sources by mypyc.

What it is: the list of modules that are worth it (`modules`), the build (`build`), the record of
its inputs (`build_record`), and its use by a process (`activation`, `finder`). What it is not:
another implementation. Without it, or when a source is no longer the one that was compiled,
everything runs as plain Python.

`activation` is imported by each entry point of a process, before anything that may be compiled.
`build` is only run. Start reading in `activation`; for the reasons see
docs/decisions/0037-a-compiled-build.md.
"""
