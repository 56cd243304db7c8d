/**
 * How an endpoint describes itself: it is served by this, and the OpenAPI document is printed from it, which adds what all
 * endpoints of its kind of access have. Objects are closed, so that tests check every member; the document opens them.
 */
import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox';
import type { Scope } from '../auth/scopes.ts';
import { CONTENT_TYPES, NUMBER_MAX } from '../detection/content-type.ts';
import type { ProblemCode } from '../problem-titles.ts';
import type { DocumentedParameter } from '../query/parameters.ts';

export const EXAMPLE_TIME = '2026-11-21T10:10:00Z';

/** The address of a named schema in the document, which is also its `$id`. */
export const componentId = (name: string) => `#/components/schemas/${name}`;

export const ref = (name: string): TSchema => Type.Ref(componentId(name));

export const described = (schema: TSchema, description: string): TSchema => ({ ...schema, description });

export const closed = (properties: TProperties, description?: string): TObject =>
  Type.Object(properties, { additionalProperties: false, ...(description && { description }) });

export const nullable = (schema: TSchema, description?: string): TSchema =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description });

export const words = (values: readonly string[]) => Type.Union(values.map((value) => Type.Literal(value)));

export const TIMESTAMP = Type.String({
  format: 'date-time',
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}Z$',
});
export const URI = Type.String({ format: 'uri' });
export const COUNT = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
export const KEY_ID = Type.String({ pattern: '^[a-z2-7]{12}$' });
export const NUMBERED_ID = Type.Integer({ minimum: 0, maximum: NUMBER_MAX });
export const CONTENT_TYPE = words(CONTENT_TYPES);
export const AS_OF = nullable(
  TIMESTAMP,
  'End of the newest finished export window; the earliest across the content types read. Data up to this time has been read, except windows listed in data_gaps (GET /v1/me) and late windows. Null while an export has no finished window.',
);

/** A record with the same names. */
export const mapped = <Given, Made>(record: Readonly<Record<string, Given>>, make: (one: Given) => Made) =>
  Object.fromEntries(Object.entries(record).map(([name, one]) => [name, make(one)]));

/** The names of components: `Text` for `text`. */
export const pascalCase = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

export type Header = Readonly<{ required: boolean; description: string; schema: TSchema }>;
export type Headers = Readonly<Record<string, Header>>;

export const header = (schema: TSchema, description: string) => ({ required: true, description, schema });
export const optional = (schema: TSchema, description: string) => ({
  ...header(schema, description),
  required: false,
});
export const text = (pattern?: string) => Type.String(pattern === undefined ? { minLength: 1 } : { pattern });

export interface Success {
  readonly description: string;
  /** Default: no-store. */
  readonly cacheControl?: string;
  readonly schema?: string;
  readonly examples?: Readonly<Record<string, unknown>>;
  /** The content types of a body that is not JSON. Without these and `schema`: no body. */
  readonly files?: readonly string[];
  readonly headers?: Headers;
}

interface EndpointBase {
  /** At most its last segment varies: `/v1/detections/{id}`. */
  readonly path: string;
  readonly method: 'GET' | 'POST';
  /** The id of its operation, by which a lab names it too. */
  readonly id: string;
  /** The id of HEAD, which is answered like GET, without the body. Absent: HEAD is refused. */
  readonly head?: string;
  readonly tag: 'Detections' | 'Account' | 'Service';
  readonly summary: string;
  readonly description: string;
  readonly segment?: Pick<DocumentedParameter, 'description' | 'schema' | 'example'>;
  readonly query?: Readonly<Record<string, DocumentedParameter>>;
  readonly requestHeaders?: Readonly<Record<string, { description: string; example: string }>>;
  readonly body?: { readonly contentType: string; readonly schema: TSchema; readonly example: unknown };
  readonly responses: Readonly<Record<number, Success>>;
  /** Besides those of its kind of access. */
  readonly problems?: readonly ProblemCode[];
  /** Headers of all its answers, problems too. */
  readonly headers?: Headers;
  readonly schemas?: Readonly<Record<string, TSchema>>;
}

/** An endpoint that requires a credential with a scope, or (null) with any. */
export interface KeyedEndpoint extends EndpointBase {
  readonly access: 'key';
  /** Where one is needed, rows count against the daily allowance. */
  readonly scope: Scope | null;
}

/** An endpoint that requires no credential, or (`client`) reads the client's own. */
export type OpenEndpoint = EndpointBase & { readonly access: 'client' | 'open' };

export type Endpoint = KeyedEndpoint | OpenEndpoint;
