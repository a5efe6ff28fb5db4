// The prompts and resources that the conformance suite expects of a server.
import { ProtocolError, inputRequired } from '@modelcontextprotocol/server';
import { PNG } from './fixture-tools.mjs';

const user = content => ({ role: 'user', content });
const say = value => user({ type: 'text', text: value });
const argument = (name, description) => ({ name, description, required: true });

export const PROMPTS = [
  { name: 'test_simple_prompt', description: 'One sentence' },
  {
    name: 'test_prompt_with_arguments',
    description: 'Repeats its arguments',
    arguments: [argument('arg1', 'First test argument'), argument('arg2', 'Second test argument')],
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'Holds a resource',
    arguments: [argument('resourceUri', 'URI of the resource to embed')],
  },
  { name: 'test_prompt_with_image', description: 'Holds a picture' },
  { name: 'test_input_required_result_prompt', description: 'Asks before it answers' },
];

const ANSWERS = {
  test_simple_prompt: () => [say('This is a simple prompt for testing.')],
  test_prompt_with_arguments: args => [say(`Prompt with arguments: arg1='${args.arg1}', arg2='${args.arg2}'`)],
  test_prompt_with_embedded_resource: args => [
    user({
      type: 'resource',
      resource: { uri: args.resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
    }),
    say('Please process the embedded resource above.'),
  ],
  test_prompt_with_image: () => [
    user({ type: 'image', data: PNG, mimeType: 'image/png' }),
    say('Please analyze the image above.'),
  ],
};

export function getPrompt(params, ctx) {
  if (params.name === 'test_input_required_result_prompt') {
    const answer = ctx.mcpReq.inputResponses?.user_context;
    if (answer?.content) return { messages: [say(`Context: ${answer.content.context}`)] };
    return inputRequired({
      inputRequests: {
        user_context: inputRequired.elicit({
          message: 'What context should the prompt use?',
          requestedSchema: { type: 'object', properties: { context: { type: 'string' } }, required: ['context'] },
        }),
      },
    });
  }
  const answer = ANSWERS[params.name];
  if (!answer) throw new ProtocolError(-32602, `no prompt ${params.name}`);
  return { messages: answer(params.arguments ?? {}) };
}

export const RESOURCES = [
  { uri: 'test://static-text', name: 'static-text', description: 'Some text', mimeType: 'text/plain' },
  { uri: 'test://static-binary', name: 'static-binary', description: 'A picture', mimeType: 'image/png' },
  { uri: 'test://watched-resource', name: 'watched-resource', description: 'Text to watch', mimeType: 'text/plain' },
];

const CONTENTS = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PNG },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Watched.' },
};

export function readResource(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id) {
    const data = { id, templateTest: true, data: `Data for ID: ${id}` };
    return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(data) }] };
  }
  return CONTENTS[uri] && { contents: [{ uri, ...CONTENTS[uri] }] };
}
