"""Other detectors on the same samples, each through its documented entry point at its default settings.

`detectors.py NAME SAMPLES` writes a verdict a line, as lychgate does: {"id", "flagged", "us"}."""
import json, logging, sys, time

logging.disable(logging.CRITICAL)


def picket():
    from aicordon import picket

    detector = picket.load()
    return lambda text: detector.check(text).flagged


def pyatr():
    from pyatr import AgentEvent, ATREngine

    engine = ATREngine()
    engine.load_default_rules()
    # The default of `pyatr scan`; most rules look at that field only.
    return lambda text: bool(engine.evaluate(AgentEvent(content=text, event_type="llm_input")))


def mcp_scanner():
    """What its YARA analyzer does; the package itself would bring some hundred others along."""
    import importlib.metadata, pathlib, yara

    files = [pathlib.Path(file.locate()) for file in importlib.metadata.files("cisco-ai-mcp-scanner") if file.suffix == ".yara"]
    rules = yara.compile(sources={file.name: file.read_text(encoding="utf-8") for file in files})
    return lambda text: bool(rules.match(data=text))


def injection_guard():
    from prompt_shield import InjectionRiskError, PromptScanner

    scanner = PromptScanner()

    def flagged(text):
        try:
            scanner.check(text)
        except InjectionRiskError:
            return True
        return False

    return flagged


def trentina():
    """Its deterministic layer; its classifier needs a model that no package brings."""
    from mcp_trentina_crunchtools.l1 import run_l1

    def flagged(text):
        stats = run_l1(text).stats
        return stats.total_detections() > 0 and stats.risk_level() in ("high", "critical")

    return flagged


# Half a second for a kilobyte: one sample in so many is judged.
ONE_IN = {"pyatr": 8}
DETECTORS = {"picket": picket, "pyatr": pyatr, "mcp-scanner": mcp_scanner, "ai-injection-guard": injection_guard, "trentina": trentina}

if __name__ == "__main__":
    flagged = DETECTORS[sys.argv[1]]()
    flagged("warm up")
    for line in open(sys.argv[2], encoding="utf-8"):
        sample = json.loads(line)
        if int(sample["id"], 16) % ONE_IN.get(sys.argv[1], 1):
            continue
        start = time.perf_counter()
        verdict = flagged(sample["text"])
        print(json.dumps({"id": sample["id"], "flagged": bool(verdict), "us": round((time.perf_counter() - start) * 1e6, 1)}))
