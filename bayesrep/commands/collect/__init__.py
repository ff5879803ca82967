"""`bayesrep collect`: ask people what images show, from the plan to what the answers say."""
