"""What `bayesrep bench` says of this machine."""

from collections.abc import Mapping

from bayesrep.commands.schemas.shapes import (
    Schema,
    by_name,
    conditional_name,
    count,
    flag,
    list_of,
    nullable,
    number,
    rows,
    seconds,
    text,
    thing,
    word,
)

_DEVICE = text("`cpu`, or another platform of JAX")
_ERROR = {"error": conditional_name("where it failed", text("why, in one line"))}
_MEASURED_WHEN = "where it did not fail"
_COMPILE_FIELDS = {
    "compile_s": seconds("to compile, beside other programs"),
    "kernels": count("instructions that launch something; loops as often as they turn"),
    "waits": count("loops whose end depends on data"),
    "flops": nullable(number("operations that the compiler counts")),
    "bytes": nullable(number("that the compiler counts as read and written", "bytes")),
}
_FACTS = {
    name: conditional_name("where it was compiled", each) for name, each in _COMPILE_FIELDS.items()
}
_PEAK = conditional_name(
    "where the part did not fail",
    by_name(nullable(count()), "most memory until then in bytes, by device; null where not told"),
)
_GRADIENTS = {
    "rows": rows(
        {
            "device": _DEVICE,
            "kind": word("full", "surrogate", "image-level"),
            "classifiers": count(),
            "chains": count("in one call"),
            "bits": count(),
            "us": conditional_name(
                _MEASURED_WHEN, number("a call among others; on a CPU by itself", "microseconds")
            ),
            "us_alone": conditional_name(
                _MEASURED_WHEN, number("a call that is waited for", "microseconds")
            ),
            "bound_us": conditional_name(
                "with the roofline",
                nullable(number("least for its bytes and operations", "microseconds")),
            ),
            **_FACTS,
            **_ERROR,
        }
    ),
    "peak_bytes": _PEAK,
    **_ERROR,
}
_MACHINE = {
    "python": text(),
    "system": text(),
    "cpu": text("its maker's name"),
    "cores": count("that the process may use"),
    "memory_bytes": nullable(count()),
    "gpus": list_of(by_name(text()), "what nvidia-smi tells of each"),
    "versions": by_name(text(), "by package"),
    "torch": nullable(text("its version and whether it sees a GPU; null without either")),
}
_RATES = {
    "bytes_per_s": number("copied", "bytes a second"),
    "float64_per_s": number("of a product of matrices", "operations a second"),
    "float32_per_s": number("likewise", "operations a second"),
    "call_us": number("of a program that does nothing", "microseconds"),
    "turn_known_us": number("of a loop of a known number", "microseconds"),
    "turn_waits_us": number("of a loop that data end", "microseconds"),
}

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    "bench": {
        "": {
            "quick": flag(),
            "machine": thing(_MACHINE),
            "devices": rows(
                {
                    "device": _DEVICE,
                    "kind": text("its maker's name"),
                    "count": count(),
                    "runtime": text("such as the version of CUDA"),
                }
            ),
            "seconds": by_name(seconds(), "by part"),
            "right": thing(
                {
                    "verdict": conditional_name(
                        "where the part did not fail", word(*("right", "WRONG", "NOT KNOWN"))
                    ),
                    "against": conditional_name("likewise", text("what is compared with")),
                    "limit": conditional_name("likewise", number("on every difference")),
                    "rows": rows(
                        {
                            "what": text("is compared"),
                            "device": _DEVICE,
                            "difference": conditional_name(
                                _MEASURED_WHEN,
                                nullable(number("largest, relative; null: infinite")),
                            ),
                            "compile_s": conditional_name("beside the CPU", seconds()),
                            **_ERROR,
                        }
                    ),
                    **_ERROR,
                }
            ),
            "gradients": thing(_GRADIENTS, "of the joint model, in 64 bits"),
            "draws": thing(
                {
                    "classifiers": conditional_name("where the part did not fail", count()),
                    "rows": rows(
                        {
                            "device": _DEVICE,
                            "chains": count(),
                            "draws_per_s": conditional_name(
                                _MEASURED_WHEN, number("of all chains")
                            ),
                            "us_a_step": conditional_name(
                                _MEASURED_WHEN, number("of the longest trajectory", "microseconds")
                            ),
                            "steps_a_draw": conditional_name(
                                _MEASURED_WHEN, number("of the longest trajectory")
                            ),
                            **_FACTS,
                            **_ERROR,
                        }
                    ),
                    "peak_bytes": _PEAK,
                    **_ERROR,
                }
            ),
            "images": thing(
                {"images": conditional_name("where the part did not fail", count()), **_GRADIENTS},
                "of the shared-difficulty model",
            ),
            "roofline": thing(
                {
                    "rows": rows(
                        {
                            "device": _DEVICE,
                            **{
                                name: conditional_name(_MEASURED_WHEN, each)
                                for name, each in _RATES.items()
                            },
                            **_ERROR,
                        },
                        "what devices can do",
                    ),
                    **_ERROR,
                }
            ),
            "gradients_32": thing(_GRADIENTS, "of the joint model, in 32 bits"),
            "advice": text("where to run which fit, by these numbers"),
        }
    }
}
