"""The parts of scripts/fault-injection, one file for each kind of fault."""
