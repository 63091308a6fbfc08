"""Tables of Delta Lake and Iceberg, behind one port.

A job appends and merges batches, each exactly once; readers are whoever reads the format. What a
batch was is kept with its commit: who wrote it, its number, and notes of the job's own. The formats
do the rest: transactions, history, small files, retention.

Start at `lakehouse_table`, the port and all that is the same in both; `delta_table` and
`iceberg_table` hold what is not. `open_tables` finds and makes them.
"""
