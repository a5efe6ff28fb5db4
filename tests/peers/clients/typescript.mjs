// What the agents on both TypeScript SDKs have in common: plan in, account out (see python_sdk.py).

export const CAPABILITIES = { sampling: {}, elicitation: { form: {} }, roots: {} };

/** An answer that a form with this schema accepts. */
function given(schema) {
  if ('default' in schema) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.oneOf) return schema.oneOf[0].const;
  return { boolean: true, integer: 1, number: 1.5, array: [] }[schema.type] ?? 'given';
}

/** What the agent answers when a server asks, by method. */
export const ANSWERS = {
  'sampling/createMessage': () =>
    ({ role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'a-model', stopReason: 'endTurn' }),
  'elicitation/create': ({ requestedSchema: { properties, required = [] } }) =>
    ({ action: 'accept', content: Object.fromEntries(required.map(name => [name, given(properties[name])])) }),
  'roots/list': () => ({ roots: [{ uri: 'file:///tmp', name: 'tmp' }] }),
};

export async function readPlan() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}

/** Keeps what the server sent during a step, and when. */
export class Notebook {
  restart() {
    this.events = [];
    this.began = performance.now();
  }
  elapsed() {
    return Math.round(performance.now() - this.began);
  }
  saw(method, params) {
    this.events.push({ method, params, ms: this.elapsed() });
  }
}

async function take(client, step, notebook) {
  const args = step.arguments ?? {};
  const watch = { onprogress: progress => notebook.saw('notifications/progress', progress), timeout: 30_000 };
  if (step.call) return client.callTool({ name: step.call, arguments: args }, ...(client.legacyShape ? [undefined, watch] : [watch]));
  if (step.read) return client.readResource({ uri: step.read });
  if (step.prompt) return client.getPrompt({ name: step.prompt, arguments: args });
  return client[{ tools: 'listTools', prompts: 'listPrompts', resources: 'listResources' }[step.list]]();
}

/** Takes every step of the plan and prints the account. */
export async function follow(plan, client, notebook, protocol) {
  const steps = [];
  for (const step of plan.steps) {
    notebook.restart();
    let outcome;
    try {
      outcome = { result: await take(client, step, notebook) };
    } catch (error) {
      if (error.code === undefined) throw error;
      outcome = { error: { code: error.code, message: error.message, data: error.data } };
    }
    steps.push({ step, ...outcome, ms: notebook.elapsed(), events: notebook.events });
  }
  const account = { protocol: protocol(), steps };
  await client.close();
  console.log(JSON.stringify(account));
}
