"""What the model is trained on: packages by name and version, and where in them the texts are.

What the results page next to this is measured on (`../inbound/sources.toml`) is not among them, so that its figures are of
sources that the model has not seen. Each line: the source, the registry, the package, the version, the licence, and pairs of
files (globs within the package) and of how they are read (`READERS` in corpus.py). Only weights come out of them, no text.
"""

ATTACKS = [
    ("agent-injection-bench", "pypi", "agent-injection-bench", "0.1.0", "MIT", [("aib/data/attacks.jsonl", "json:injected")]),
    ("agentprobe-injection", "pypi", "agentprobe-injection", "0.2.0a1", "MIT",
     [("agentprobe/attacks/transforms.py", "python"), ("agentprobe/injection/carriers.py", "python")]),
    ("pyrit", "pypi", "pyrit", "1.1.0", "MIT", [("pyrit/datasets/jailbreak/templates/*.yaml", "yaml:value")]),
    ("deepteam", "pypi", "deepteam", "1.0.10", "Apache-2.0",
     [("deepteam/vulnerabilities/%s/template.py" % name, "inputs")
      for name in ("indirect_instruction", "goal_theft", "recursive_hijacking", "tool_metadata_poisoning",
                   "insecure_inter_agent_communication", "prompt_leakage", "tool_orchestration_abuse")]),
    ("nullsec", "pypi", "nullsec-promptinject", "0.1.0", "MIT", [("nullsec_promptinject/payloads.py", "python")]),
    ("jailbreak-corpus-mini", "pypi", "jailbreak-corpus-mini-py", "0.1.0", "MIT", [("jailbreak_corpus_mini/corpus.json", "json:prompt")]),
] + [
    ("atr-" + name, "npm", "agent-threat-rules", "4.0.0", "MIT", [("rules/%s/*.yaml" % name, "cases:true_positives")])
    for name in ("agent-manipulation", "context-exfiltration", "prompt-injection", "skill-compromise", "tool-poisoning")
]

BENIGN = [
    ("atr-spared", "npm", "agent-threat-rules", "4.0.0", "MIT", [("rules/*/*.yaml", "cases:true_negatives")]),
    ("atr-texts", "npm", "agent-threat-rules", "4.0.0", "MIT", [("**/*.md", "text")]),
    ("skill-scanner", "pypi", "cisco-ai-skill-scanner", "2.3.2", "Apache-2.0", [("**/*.py", "python"), ("**/*.md", "text")]),
] + [
    (name, "pypi", name, version, licence, [("**/*.md", "text"), ("**/*.rst", "text"), ("**/*.txt", "text"), ("**/*.html", "text"),
                                             ("**/locale/*/LC_MESSAGES/django.po", "po"), ("**/*.py", "python")])
    for name, version, licence in (
        ("ansible-core", "2.19.14", "GPL-3.0"), ("autogen-agentchat", "0.7.5", "MIT"),
        ("awslabs.aws-api-mcp-server", "1.5.6", "Apache-2.0"), ("awslabs.aws-documentation-mcp-server", "1.2.3", "Apache-2.0"),
        ("buildbot", "4.3.0", "GPL-2.0"), ("celery", "5.7.0", "BSD-3"), ("crewai", "1.15.30", "MIT"), ("django", "5.2.19", "BSD-3"),
        ("django-allauth", "65.21.1", "MIT"), ("llama-index-core", "0.14.25", "MIT"), ("mailman", "3.3.10", "GPL-3.0"),
        ("mcp", "2.3.0", "MIT"), ("mcp-server-fetch", "2026.10.24", "MIT"), ("mcp-server-git", "2026.10.19", "MIT"),
        ("mitmproxy", "11.0.2", "MIT"), ("openai-agents", "0.24.0", "MIT"), ("pretix", "2026.8.0", "AGPL-3.0"),
        ("scrapy", "2.19.0", "BSD-3"), ("sphinx", "9.0.4", "BSD-2"), ("wagtail", "8.0.1", "BSD-3"))
] + [
    (name, "npm", name, version, licence, [("**/*.md", "text"), ("**/*.txt", "text"), ("**/*.js", "strings")])
    for name, version, licence in (
        ("claude-flow", "3.43.0", "MIT"), ("eslint", "10.15.0", "MIT"),
        ("task-master-ai", "0.43.1", "MIT"), ("@modelcontextprotocol/server-everything", "2026.8.31", "MIT"), ("@playwright/mcp", "0.0.83", "Apache-2.0"))
]
