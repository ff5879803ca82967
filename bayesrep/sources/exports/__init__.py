"""What annotation tools export, one module a form; `bayesrep.sources.raw_answers` calls them."""
