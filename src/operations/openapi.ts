/** The OpenAPI 3.1 document of the administration API, made from the table of operations. */
import { type TSchema, Type } from '@sinclair/typebox';
import { JOB } from './jobs.ts';
import { COMMA_LIST } from './member.ts';
import { type Operation, pathOf } from './operation.ts';
import { PROBLEM } from './problem.ts';
import { OPERATIONS } from './table.ts';

const DESCRIPTION = `Everything that an operator can do with a running Wirewatch, as requests on its administration port.

A session is needed: redeem the token of a link that \`wirewatch console\` prints (the part after \`#login=\`) with \`POST /console/session\`, and send the secret as \`Authorization: Bearer SECRET\`. A link works once, for ten minutes. With \`wirewatch console --read-only\` the session may only read.

On the control socket, \`control.sock\` in the data folder, the same paths need no session: whoever may open the socket may use it, for example with \`curl -X POST --unix-socket control.sock http://wirewatch/operations/key-list\`.

A lab answers these paths at the address of its API, too, to its own machine and without a session. The operations of a lab (\`lab-…\`) are refused by any other Wirewatch.

What takes long (\`x-job\`) is answered when it is done. With \`Prefer: respond-async\` the answer is 202 with the job, as soon as it has begun; with \`Accept: application/x-ndjson\` each progress is a line, and the outcome or the problem the last one.

Requests of pages of other origins, and under a host name that the public DNS can have, are refused.`;

const OUTCOME_MEMBERS = {
  done: Type.Union([Type.String(), Type.Null()], { description: 'What was done, in a sentence.' }),
  next: Type.Array(Type.String(), { description: 'What comes next, in paragraphs.' }),
  warning: Type.Union([Type.String(), Type.Null()], { description: 'What its user must know besides.' }),
  failed: Type.Boolean({ description: 'Whether it did not do all that was asked.' }),
};
/** The statuses of {@link PROBLEM}, with their reasons. */
const PROBLEMS: Readonly<Record<number, string>> = {
  400: 'A member is unknown, missing or wrong: the detail names it, what was expected and what was found.',
  401: 'There is no session, or it has ended.',
  403: 'The session may only read, a page of another origin asked, or only a command does it.',
  404: 'What it names does not exist.',
  409: 'It is not possible now: the detail says why, and what to do.',
  503: 'The databases cannot be read or written now.',
};

const json = (schema: object) => ({ 'application/json': { schema } });
const body = (schema: object, required = true) => ({ required, content: json(schema) });
const answer = (description: string, schema: object) => ({ description, content: json(schema) });
const refer = (kind: 'schemas' | 'responses', name: string) => ({ $ref: `#/components/${kind}/${name}` });

export function adminDocument() {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Wirewatch administration',
      version: 'v1',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [
      { url: 'http://127.0.0.1:9464', description: 'The address of the settings admin.host and admin.port.' },
    ],
    security: [{ session: [] }],
    paths: Object.fromEntries([
      ['/console/session', { post: SESSION }],
      ...OPERATIONS.map((operation) => [`/operations/${pathOf(operation)}`, { post: described(operation) }]),
    ]),
    components: {
      schemas: { Problem: PROBLEM, Job: JOB },
      responses: Object.fromEntries(
        Object.entries(PROBLEMS).map(([status, description]) => [
          `Problem${status}`,
          { description, content: { 'application/problem+json': { schema: refer('schemas', 'Problem') } } },
        ]),
      ),
      securitySchemes: { session: { type: 'http', scheme: 'bearer' } },
    },
  };
}

const SESSION = {
  operationId: 'beginSession',
  summary: 'Redeem a link into the console.',
  security: [],
  requestBody: body(Type.Object({ token: Type.String() })),
  responses: {
    200: answer('The session has begun.', Type.Object({ secret: Type.String() })),
    401: refer('responses', 'Problem401'),
  },
};

function described(operation: Operation) {
  const { name, summary, help, kind, members, job, result = Type.Unknown() } = operation;
  const isNeeded = Object.values(members).some(({ isRequired }) => isRequired);
  return {
    operationId: name.replaceAll(/[ -](\w)/g, (_, letter: string) => letter.toUpperCase()),
    summary: `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`,
    ...(help !== undefined && { description: help }),
    'x-kind': kind,
    'x-job': job !== undefined,
    requestBody: body(membersSchema(operation), isNeeded),
    responses: {
      200: answer('The outcome.', Type.Object({ value: result, ...OUTCOME_MEMBERS })),
      ...(job !== undefined && { 202: answer('The job has begun.', refer('schemas', 'Job')) }),
      ...Object.fromEntries(
        Object.keys(PROBLEMS).map((status) => [status, refer('responses', `Problem${status}`)]),
      ),
    },
  };
}

/** The JSON object that an operation takes. Lists may also be texts with commas, as on the command line. */
export function membersSchema({ members }: Pick<Operation, 'members'>): TSchema {
  const properties = Object.entries(members).map(([name, { schema, hint, isRequired, several }]) => {
    const own = several === 'no' ? schema : Type.Union([schema, COMMA_LIST]);
    const described = { ...own, description: hint };
    return [name, isRequired ? described : Type.Optional(described)] as const;
  });
  return Type.Object(Object.fromEntries(properties), { additionalProperties: false });
}
