/**
 * Which endpoint a path and method belong to. Paths are exact and case-sensitive; a trailing slash is another path.
 *
 * The router is more forgiving than the API (`/v1/me/`, HEAD where only GET is served), so this table decides, and
 * the router only sees what the table accepts.
 */
import type { IncomingMessage } from 'node:http';
import type { Credential } from '../auth/authorize.ts';
import type { OAuthErrorCode, ProblemCode } from '../problem-titles.ts';
import type { Now } from '../time.ts';
import type { KeyedEndpoint, OpenEndpoint } from './description.ts';
import type { FileBody } from './file-body.ts';
import type { Problem } from './problem.ts';

export interface Call {
  readonly query: string;
  /** The last segment of the path, as sent: the value of a route such as `/v1/detections/{id}`. */
  readonly segment: string;
  readonly nowMs: number;
  readonly address: string;
  readonly request: IncomingMessage;
}

export interface Answer {
  readonly status: number;
  /** Pieces are sent in order; an open file is closed when it is sent. A 304 has ''. */
  readonly body: string | readonly Buffer[] | FileBody | EventBody;
  readonly contentType?: string;
  readonly cacheControl?: string;
  /** Further headers: name, value, name, value. */
  readonly headers?: readonly string[];
  /** Detections in the body: they count against the daily allowance. */
  readonly rows?: number;
  /** The position of the change stream's cursor in the body: how far the client has read. */
  readonly position?: number;
  /** Spent waiting for a change (`Prefer: wait`). */
  readonly waited_ms?: number;
  /** The key that an open endpoint has verified: for the log. */
  readonly key_id?: string;
  /** The code of an error, for the log. */
  readonly code?: ProblemCode | OAuthErrorCode;
}

/** A body without an end that is known: server-sent events, never compressed. */
export interface EventBody {
  readonly events: AsyncIterable<Buffer | string>;
}

export interface KeyedCall extends Call {
  /** An endpoint calls this before it reads a page, and then reads it without another wait. */
  turn(): Promise<void>;
  /** Called after the parameters are checked, before anything is read. @throws Refused `daily_allowance` */
  requireAllowance(): void;
  /** Verifies the credential again, after a wait. @throws Refused as for a new request, but for the request rate */
  verifyAgain(): Credential;
  /**
   * Counts a further page of the same answer, as a request of its own, since the credential was verified again.
   * @throws Refused `rate_limited`
   */
  countPage(page: Omit<Answer, 'body'>): void;
  readonly now: Now;
}

export interface KeyedRoute extends KeyedEndpoint {
  answer(call: KeyedCall, credential: Credential): Answer | Promise<Answer>;
}

export interface OpenCall extends Call {
  /** An endpoint that reads credentials itself calls this with the key id in them: for the log. */
  claim(keyId: string): void;
}

export interface OpenRoute extends OpenEndpoint {
  answer(call: OpenCall): Answer | Promise<Answer>;
}

export type Route = KeyedRoute | OpenRoute;

type Findable = Pick<Route, 'path' | 'method' | 'head'>;

export type Found<Kind = Route> = { readonly kind: 'route'; readonly route: Kind } | Unrouted;

export type Unrouted = { readonly kind: 'no_path' } | { readonly kind: 'no_method'; readonly allow: string };

export function createRouteTable<Kind extends Findable>(
  routes: readonly Kind[],
): (path: string, method: string) => Found<Kind> {
  const exact = new Map<string, Kind>();
  const varying = new Map<string, Kind>();
  for (const route of routes) {
    if (route.path.endsWith('}')) varying.set(route.path.slice(0, route.path.indexOf('{')), route);
    else exact.set(route.path, route);
  }
  return (path, method) => {
    const route = exact.get(path) ?? varyingRoute(varying, path);
    if (route === undefined) return { kind: 'no_path' };
    if (method === route.method || (method === 'HEAD' && route.head !== undefined))
      return { kind: 'route', route };
    return { kind: 'no_method', allow: route.head === undefined ? route.method : `${route.method}, HEAD` };
  };
}

export function unroutedProblem(found: Unrouted): Problem {
  return found.kind === 'no_path'
    ? { code: 'not_found', detail: 'No endpoint exists at this path.' }
    : { code: 'method_not_allowed', detail: `This endpoint supports only ${found.allow}.` };
}

function varyingRoute<Kind>(varying: ReadonlyMap<string, Kind>, path: string): Kind | undefined {
  const slash = path.lastIndexOf('/') + 1;
  // An empty last segment is a trailing slash.
  return slash === path.length ? undefined : varying.get(path.slice(0, slash));
}

/** The path and query of a request target, which may be absolute (RFC 9112, 3.2.2). */
export function splitTarget(target: string): { path: string; query: string } {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
  const mark = local.indexOf('?');
  if (mark < 0) return { path: local === '' ? '/' : local, query: '' };
  return { path: mark === 0 ? '/' : local.slice(0, mark), query: local.slice(mark + 1) };
}
