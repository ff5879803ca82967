"""Compare fits, and mixtures: the group models."""

from collections.abc import Mapping

from bayesrep.commands.schemas.shapes import (
    LEFT_OUT_FIELD,
    Schema,
    count,
    file,
    flag,
    nats,
    nullable,
    number,
    rows,
    text,
)

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    "loo": {
        "": {
            "rows": rows(
                {
                    "model": file("the posterior"),
                    "elpd": nats("larger is better"),
                    "p_loo": number("effective number of parameters"),
                    "difference": nats("to the best"),
                    "se": nats("standard error of that"),
                    "se_shared": nats("the same where errors go together"),
                    "counts_difference": nats(),
                    "counts_se": nats(),
                    "answers_difference": nats(),
                    "answers_se": nats(),
                    "pareto_k_high": count("units whose share of elpd is not reliable"),
                    "waic": nats("the same as elpd by another formula"),
                },
                "the best first",
            )
        }
    },
    "mixtures": {
        "": {
            "rows": rows(
                {
                    "dataset": text(),
                    "components": count(),
                    "parameters": count(),
                    "log_likelihood": nats(),
                    "aic": number("smaller is better"),
                    "bic": number("smaller is better"),
                    "held_out_log_likelihood": nullable(nats("over all images; larger is better")),
                    "converged": flag(),
                    "degenerate": count("components shrunk to a point"),
                    "held_out_behind": nullable(nats("the best")),
                    "held_out_error": nullable(nats("standard error of that, over images")),
                }
            ),
            **LEFT_OUT_FIELD,
        }
    },
}
