"""Play the logs that come with the web page, and write them into it: `python tools/example_logs.py`."""

from __future__ import annotations

from unbandit.web.examples import EXAMPLES, example_path, simulate_example


def main() -> None:
    """Write each log; examples that show the same one in another way share its file."""
    for path, name in {example_path(example.name): example.name for example in EXAMPLES}.items():
        simulate_example(name).write(path)
        print(f"Written: {path.name}")


if __name__ == "__main__":
    main()
