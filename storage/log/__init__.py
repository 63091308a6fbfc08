"""One replica's log: appending, reading, rolling, truncation, retention, leader epochs."""
