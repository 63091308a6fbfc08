"""Health of a broker, for those who look after services: systemd, containers, load balancers.

What it is: the notices to systemd (`service_notices`), and a command that checks whether a broker
answers (`python -m broker.health`). What it is not: a look at replicas or disks, for which there
are metrics. `broker.__main__` and `broker.node` import it. Start reading in either module.
"""
