#!/usr/bin/env python3
"""An external classifier for lychgate in a few lines: put a model in the place of `score`.

    python3 classifier.py 8900        # then: url = "http://127.0.0.1:8900/" under [policy.default.classifier]
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def score(text: str) -> float:
    """How likely it is that a text gives orders to the model that reads it, from 0 to 1."""
    words = ("ignore", "instructions", "system prompt", "do not tell")
    return min(1.0, sum(0.5 for word in words if word in text.lower()))


class Classifier(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        scores = [score(text["text"]) for text in asked["texts"]]
        answer = json.dumps({"name": "few-words", "version": "1", "scores": scores}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Classifier)
    print(server.server_port, flush=True)
    server.serve_forever()
