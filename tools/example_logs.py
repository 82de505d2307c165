"""Play the logs that come with the web page, and write them into it: `python tools/example_logs.py`."""

from __future__ import annotations

from unbandit.web.examples import EXAMPLES


def main() -> None:
    """Write each log; examples that show the same one in another way share its file."""
    for path, example in {example.path: example for example in EXAMPLES.values()}.items():
        example.simulate().write(path)
        print(f"Written: {path.name}")


if __name__ == "__main__":
    main()
