"""Transactions of both protocols under faults, while their coordinators are moved on purpose.

`transactor.py` is a producer that copies, `account.py` what became of each of its transactions,
`mover.py` elects and reassigns, and `workload.py` puts everything together.
"""
