# /// script
# requires-python = ">=3.9"
# dependencies = ["burnish"]
# ///
"""Trains the built-in task, writes a report, and pushes the model to the Hub if a name is given.

    uv run examples/uv_script.py --steps 96
    hf jobs uv run --secrets HF_TOKEN examples/uv_script.py --steps 96 --push-to-hub ME/arithmetic
"""

import argparse
import sys

import burnish


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=96)
    parser.add_argument("--push-to-hub", metavar="NAME")
    args = parser.parse_args()
    settings = {
        "algorithm.adv_estimator": "rloo",
        "trainer.total_training_steps": args.steps,
        "trainer.save_freq": args.steps,
    }
    try:
        run = burnish.train(overrides=settings)
    except burnish.TrainerError as error:
        sys.exit(f"error: {error}")
    best = run.info["best"]
    print(f"{best['metric']} {best['value']:.4f} at step {best['step']}")
    print(run.report())
    if args.push_to_hub:
        print(run.export("exported", best=True, push_to_hub=args.push_to_hub))


if __name__ == "__main__":
    main()
