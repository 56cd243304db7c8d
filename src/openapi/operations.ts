/** The operations of the document, made from the descriptions of the endpoints. */
import { type TSchema, Type } from '@sinclair/typebox';
import type { Endpoint } from '../http/description.ts';
import { ENDPOINTS } from '../http/endpoints/all.ts';
import { pascalCase, ref } from '../http/vocabulary.ts';
import { FILTER_PARAMETERS, STREAM_PARAMETERS } from '../query/common-parameters.ts';
import { type Response, responsesOf } from './responses.ts';

export interface Parameter {
  /** Name as a component, which no schema has: of generators, either makes a type. */
  readonly component: string;
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description: string;
  readonly schema: TSchema;
  readonly example: unknown;
}

export interface Operation
  extends Pick<Endpoint, 'path' | 'id' | 'tag' | 'summary' | 'description' | 'body'> {
  readonly method: 'get' | 'head' | 'post';
  /** What a request needs. */
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  /** By status. */
  readonly responses: Readonly<Record<string, Response>>;
}

export const OPERATIONS: readonly Operation[] = ENDPOINTS.flatMap((endpoint) => {
  const operation = operationOf(endpoint);
  return endpoint.head === undefined ? [operation] : [operation, headOf(operation, endpoint.head)];
});

function operationOf(endpoint: Endpoint): Operation {
  return {
    ...endpoint,
    method: endpoint.method === 'GET' ? 'get' : 'post',
    security: securityOf(endpoint),
    parameters: parametersOf(endpoint),
    responses: responsesOf(endpoint),
  };
}

/** HEAD: the same statuses and headers, without a body. */
function headOf(operation: Operation, id: string): Operation {
  const responses = Object.entries(operation.responses).map(([status, { name, description, headers }]) => [
    status,
    { name: name === '' ? '' : `Head${name}`, description, headers },
  ]);
  return { ...operation, method: 'head', id, responses: Object.fromEntries(responses) };
}

function securityOf(endpoint: Endpoint): Operation['security'] {
  if (endpoint.access !== 'key') return endpoint.access === 'open' ? [] : [{ client: [] }, {}];
  return [{ bearer: [] }, { token: endpoint.scope === null ? [] : [endpoint.scope] }];
}

function parametersOf({ path, segment, query = {}, requestHeaders = {} }: Endpoint): Parameter[] {
  const [, inPath = ''] = /\{(\w+)\}$/.exec(path) ?? [];
  const parameter = (
    name: string,
    where: Parameter['in'],
    required: boolean,
    { description, schema, example }: Pick<Parameter, 'description' | 'schema' | 'example'>,
  ): Parameter => ({
    component: `${pascalCase(name)}${isFilter(name) ? 'Filter' : ''}`,
    name,
    in: where,
    required,
    description,
    schema: withAddress(schema),
    example,
  });
  return [
    ...(segment === undefined ? [] : [parameter(inPath, 'path', true, segment)]),
    ...Object.entries(query).map(([name, one]) => parameter(name, 'query', one.required !== undefined, one)),
    ...Object.entries(requestHeaders).map(([name, one]) =>
      parameter(name, 'header', false, { ...one, schema: Type.String() }),
    ),
  ];
}

/** Schemas have such names too, as `Band`. */
function isFilter(name: string): boolean {
  return Object.hasOwn(STREAM_PARAMETERS, name) || Object.hasOwn(FILTER_PARAMETERS, name);
}

/** A component that a schema names, by its address in the document. */
function withAddress(schema: TSchema): TSchema {
  if (typeof schema.$ref === 'string') return ref(schema.$ref);
  return schema.type === 'array' ? { ...schema, items: withAddress(schema.items) } : schema;
}
