// The tools that the conformance suite expects of a server, each as
// { description, inputSchema?, run(args, ctx, hooks) }.
import { MissingRequiredClientCapabilityError, acceptedContent, inputRequired } from '@modelcontextprotocol/server';

export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

export const text = value => ({ content: [{ type: 'text', text: value }] });
const pause = ms => new Promise(done => setTimeout(done, ms));
const object = (properties, required = []) => ({ type: 'object', properties, required });
const string = (description, rest = {}) => ({ type: 'string', description, ...rest });

/** One form question, as an embedded request of the revision that has no server requests. */
const ask = (message, properties) =>
  inputRequired.elicit({ message, requestedSchema: object(properties, Object.keys(properties)) });
const askName = message => ask(message, { name: { type: 'string' } });
const sample = (prompt, maxTokens) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens });

/**
 * A request of an earlier revision, sent to the client while the call waits, and on the call's own stream: the SDK's
 * `elicitInput` and `requestSampling` take the session's, which need not be open yet, and are lost then.
 */
const elicitInput = (ctx, params) => ctx.mcpReq.send({ method: 'elicitation/create', params });

async function elicit(ctx, message, requestedSchema) {
  const answer = await elicitInput(ctx, { message, requestedSchema });
  return text(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
}

const plain = {
  test_simple_text: {
    description: 'Answers one sentence',
    run: () => text('This is a simple text response for testing.'),
  },
  test_image_content: {
    description: 'Answers a picture of one pixel',
    run: () => ({ content: [{ type: 'image', data: PNG, mimeType: 'image/png' }] }),
  },
  test_audio_content: {
    description: 'Answers an empty sound',
    run: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  },
  test_embedded_resource: {
    description: 'Answers a resource inside the result',
    run: () => ({
      content: [{
        type: 'resource',
        resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' },
      }],
    }),
  },
  test_multiple_content_types: {
    description: 'Answers text, a picture and a resource',
    run: () => ({
      content: [
        { type: 'text', text: 'Multiple content types test:' },
        { type: 'image', data: PNG, mimeType: 'image/png' },
        {
          type: 'resource',
          resource: {
            uri: 'test://mixed-content-resource',
            mimeType: 'application/json',
            text: JSON.stringify({ test: 'data', value: 123 }),
          },
        },
      ],
    }),
  },
  test_error_handling: {
    description: 'Always fails',
    run: () => ({ ...text('This tool intentionally returns an error for testing'), isError: true }),
  },
  test_headers: {
    description: 'Repeats arguments that travel in headers too',
    inputSchema: object({
      region: string('Where', { 'x-mcp-header': 'Region' }),
      query: string('What'),
    }, ['region', 'query']),
    run: args => text(`${args.region}: ${args.query}`),
  },
  json_schema_2020_12_tool: {
    description: 'Tool with JSON Schema 2020-12 features',
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: {
          $anchor: 'addressDef',
          type: 'object',
          properties: { street: { type: 'string' }, city: { type: 'string' } },
        },
      },
      properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
    run: args => text(JSON.stringify(args)),
  },
};

const live = {
  test_tool_with_logging: {
    description: 'Logs three lines while it runs',
    async run(_args, ctx) {
      for (const line of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await ctx.mcpReq.log('info', line);
        await pause(50);
      }
      return text('Logged three lines.');
    },
  },
  test_logging_tool: {
    description: 'Logs a line where the caller asked for logs',
    async run(_args, ctx) {
      await ctx.mcpReq.log('info', 'a line of log');
      return text('Logged.');
    },
  },
  test_tool_with_progress: {
    description: 'Reports progress while it runs',
    async run(_args, ctx) {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        if (progressToken !== undefined) {
          await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
        }
        await pause(50);
      }
      return text('Done.');
    },
  },
  test_reconnection: {
    description: 'Hangs up in the middle of a call; the answer waits for whoever comes back',
    async run(_args, ctx) {
      ctx.http?.closeSSE?.();
      await pause(100);
      return text('Answered after a reconnection.');
    },
  },
  test_sampling: {
    description: 'Asks the client for a completion',
    inputSchema: object({ prompt: string('The prompt') }, ['prompt']),
    async run(args, ctx) {
      const messages = [{ role: 'user', content: { type: 'text', text: args.prompt } }];
      const answer = await ctx.mcpReq.send({ method: 'sampling/createMessage', params: { messages, maxTokens: 100 } });
      return text(`LLM response: ${answer.content.text ?? JSON.stringify(answer.content)}`);
    },
  },
  test_elicitation: {
    description: 'Asks the user a question',
    inputSchema: object({ message: string('The question') }, ['message']),
    async run(args, ctx) {
      const answer = await elicitInput(ctx, {
        message: args.message,
        requestedSchema: object(
          { username: string("User's response"), email: string("User's email address") },
          ['username', 'email'],
        ),
      });
      return text(`User response: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
    },
  },
  test_elicitation_sep1034_defaults: {
    description: 'Asks with defaults',
    run: (_args, ctx) => elicit(ctx, 'Please check these values', object({
      name: string('Name', { default: 'John Doe' }),
      age: { type: 'integer', description: 'Age', default: 30 },
      score: { type: 'number', description: 'Score', default: 95.5 },
      status: string('Status', { enum: ['active', 'inactive', 'pending'], default: 'active' }),
      verified: { type: 'boolean', description: 'Verified', default: true },
    })),
  },
  test_elicitation_sep1330_enums: {
    description: 'Asks with every kind of choice',
    run: (_args, ctx) => {
      const options = ['option1', 'option2', 'option3'];
      const titled = what => ['First', 'Second', 'Third'].map((nth, at) => ({ const: `value${at + 1}`, title: `${nth} ${what}` }));
      return elicit(ctx, 'Please choose', object({
        untitledSingle: { type: 'string', enum: options },
        titledSingle: { type: 'string', oneOf: titled('Option') },
        legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
        untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
        titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
      }));
    },
  },
  test_trigger_tool_change: {
    description: 'Says that the tools changed',
    run: (_args, _ctx, hooks) => (hooks.toolsChanged(), text('Tools changed.')),
  },
  test_trigger_prompt_change: {
    description: 'Says that the prompts changed',
    run: (_args, _ctx, hooks) => (hooks.promptsChanged(), text('Prompts changed.')),
  },
};

const rounds = {
  test_missing_capability: {
    description: 'Needs a client that samples',
    run(_args, ctx) {
      if (!declared(ctx).sampling) throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
      return text('The client samples.');
    },
  },
  test_streaming_elicitation: {
    description: 'Asks the user through a result',
    run: (_args, ctx) => once(ctx, 'answer', { answer: ask('Go on?', { ok: { type: 'boolean' } }) }, () => 'Went on.'),
  },
  test_input_required_result_elicitation: {
    description: 'Asks for a name',
    run: (_args, ctx) =>
      once(ctx, 'user_name', { user_name: askName('What is your name?') }, answers => `Hello, ${answers.user_name.content.name}!`),
  },
  test_input_required_result_sampling: {
    description: 'Asks the model a question',
    run: (_args, ctx) =>
      once(ctx, 'capital_question', { capital_question: sample('What is the capital of France?', 100) },
        answers => `The model says: ${answers.capital_question.content.text ?? ''}`),
  },
  test_input_required_result_list_roots: {
    description: 'Asks for the roots',
    run: (_args, ctx) =>
      once(ctx, 'client_roots', { client_roots: inputRequired.listRoots() },
        answers => `Roots: ${answers.client_roots.roots.map(root => root.uri).join(', ')}`),
  },
  test_input_required_result_request_state: confirmed('Please confirm', 'state-ok'),
  test_input_required_result_tampered_state: confirmed('Please confirm once more', 'untouched'),
  test_input_required_result_multiple_inputs: {
    description: 'Asks three things at once',
    async run(_args, ctx, hooks) {
      const asked = {
        user_name: askName('What is your name?'),
        greeting: sample('Generate a greeting', 50),
        client_roots: inputRequired.listRoots(),
      };
      const answers = ctx.mcpReq.inputResponses ?? {};
      if (Object.keys(asked).every(key => answers[key])) return text(`All three: ${JSON.stringify(answers)}`);
      return inputRequired({ inputRequests: asked, requestState: await hooks.seal({ asked: Object.keys(asked) }) });
    },
  },
  test_input_required_result_multi_round: {
    description: 'Asks twice, one after the other',
    async run(_args, ctx, hooks) {
      const answers = ctx.mcpReq.inputResponses ?? {};
      const state = ctx.mcpReq.requestState();
      if (state?.name && answers.step2) return text(`${state.name} likes ${answers.step2.content?.color}.`);
      if (answers.step1) {
        return inputRequired({
          inputRequests: { step2: ask('Step 2: What is your favorite color?', { color: { type: 'string' } }) },
          requestState: await hooks.seal({ round: 2, name: answers.step1.content?.name ?? 'somebody' }),
        });
      }
      return inputRequired({
        inputRequests: { step1: askName('Step 1: What is your name?') },
        requestState: await hooks.seal({ round: 1 }),
      });
    },
  },
  test_input_required_result_capabilities: {
    description: 'Asks only for what the client can do',
    run(_args, ctx) {
      const can = declared(ctx);
      const inputRequests = {
        ...(can.elicitation && { user_name: askName('What is your name?') }),
        ...(can.sampling && { greeting: sample('Generate a greeting', 50) }),
        ...(can.roots && { client_roots: inputRequired.listRoots() }),
      };
      if (ctx.mcpReq.inputResponses || Object.keys(inputRequests).length === 0) return text('Asked what could be asked.');
      return inputRequired({ inputRequests });
    },
  },
};

/** What the request says its client can do. */
function declared(ctx) {
  return ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
}

/** Asks until `key` is answered in a shape that can be used, then says `done`. */
function once(ctx, key, inputRequests, done) {
  const answers = ctx.mcpReq.inputResponses ?? {};
  const answer = answers[key];
  const usable = answer && (answer.action === undefined || acceptedContent(answers, key) !== undefined);
  return usable ? text(done(answers)) : inputRequired({ inputRequests });
}

function confirmed(message, word) {
  return {
    description: 'Asks for a confirmation and carries sealed state',
    async run(_args, ctx, hooks) {
      if (ctx.mcpReq.requestState()?.word === word && ctx.mcpReq.inputResponses?.confirm) return text(`Confirmed: ${word}`);
      return inputRequired({
        inputRequests: { confirm: ask(message, { ok: { type: 'boolean' } }) },
        requestState: await hooks.seal({ word }),
      });
    },
  };
}

export const TOOLS = { ...plain, ...live, ...rounds };
