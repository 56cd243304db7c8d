/** The OpenAPI document of a lab's own endpoints, from the table of actions: so that tests in any language can use them. */
import { ACTIONS } from './actions.ts';

const JSON_TYPE = 'application/json';

export function labDocument() {
  const actions = Object.entries(ACTIONS).map(([name, { summary, body }]) => {
    const post = {
      ...operation(`post ${name}`, summary),
      requestBody: {
        required: (body.required ?? []).length > 0,
        content: { [JSON_TYPE]: { schema: printed(body) } },
      },
    };
    return [`/_lab/${name}`, { post, ...OTHERS[name] }] as const;
  });
  return {
    openapi: '3.1.1',
    info: {
      title: 'Wirewatch lab',
      version: '1',
      summary: 'Clock, feed and faults of a lab.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The lab itself, asked from its own machine.' }],
    security: [],
    paths: { ...Object.fromEntries(actions), ...ALONE },
  };
}

const NUMBER_AFTER = {
  name: 'after',
  in: 'query',
  description: 'Only requests with greater numbers.',
  schema: { type: 'integer', minimum: 0 },
};
const OTHERS: Readonly<Record<string, object>> = {
  clock: { get: operation('get clock', 'What the clock shows.') },
  faults: {
    get: operation('get faults', 'The faults, with how often each has fired.'),
    delete: operation('delete faults', 'Remove all faults.'),
  },
};
const ALONE = {
  '/_lab/faults/{id}': {
    delete: {
      ...operation('delete fault', 'Remove a fault.'),
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
    },
  },
  '/_lab/report': {
    get: {
      ...operation('get report', 'What clients did, and what was done to them.'),
      parameters: [NUMBER_AFTER],
    },
    delete: operation('delete report', 'Forget the requests and actions so far.'),
  },
  '/_lab/openapi.json': { get: operation('get document', 'This document.') },
};

function operation(name: string, summary: string) {
  const answer = (description: string) => ({
    description,
    content: { [JSON_TYPE]: { schema: { type: 'object' } } },
  });
  return {
    operationId: name.replaceAll(/[ -](\w)/g, (_, letter: string) => letter.toUpperCase()),
    summary,
    responses: { 200: answer('Done.'), '4XX': answer('Refused; detail says why.') },
  };
}

/** Without what only our own checks know. */
function printed(schema: object): unknown {
  return JSON.parse(
    JSON.stringify(schema, (name, value) =>
      name === 'expected' || (name === 'format' && String(value).startsWith('lab-')) ? undefined : value,
    ),
  );
}
