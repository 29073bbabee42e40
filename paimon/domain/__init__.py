"""Values, rules, plans and codecs of the table format, without I/O."""
