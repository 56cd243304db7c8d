/**
 * Which endpoint a path and method belong to. Paths are exact and case-sensitive; a trailing slash is another path.
 *
 * The router beneath is more forgiving than the contract (`/v1/me/`, HEAD where only GET is served), so this
 * table decides, and the router only ever sees what the table has let through.
 */
import type { IncomingMessage } from 'node:http';
import type { Credential } from '../auth/authorize.ts';
import type { Scope } from '../auth/scopes.ts';
import type { OAuthErrorCode, ProblemCode } from '../error-codes.ts';
import type { Now } from '../time.ts';
import type { FileBody } from './file-body.ts';
import type { Problem } from './problem.ts';

/** What an endpoint is told about a request. */
export interface Call {
  /** What follows the `?`, as sent. */
  readonly query: string;
  /** The path's last segment where the route ends in one that varies, as sent. */
  readonly segment: string;
  readonly nowMs: number;
  readonly address: string;
  /** For its headers and its body. */
  readonly request: IncomingMessage;
}

export interface Answer {
  readonly status: number;
  /** Pieces are sent one after the other, uncopied; an open file is closed when it is sent. A 304 has ''. */
  readonly body: string | readonly Buffer[] | FileBody;
  /** `application/json` unless told otherwise. */
  readonly contentType?: string;
  /** `no-store` unless told otherwise. */
  readonly cacheControl?: string;
  /** Further headers: name, value, name, value. */
  readonly headers?: readonly string[];
  /** Detections in the body: they count against the daily allowance. */
  readonly rows?: number;
  /** Of the cursor of the change stream in the body: how far its follower is. */
  readonly position?: number;
  /** How much of the time until this answer was spent waiting for a change, as the client preferred. */
  readonly waited_ms?: number;
  /** The key, where an endpoint for anybody has verified one: for the log. */
  readonly key_id?: string;
  /** What a refusal is called: for the log. */
  readonly code?: ProblemCode | OAuthErrorCode;
}

interface RouteBase {
  /** As in the contract; at most the last segment varies: `/v1/detections/{id}`. */
  readonly path: string;
  readonly method: 'GET' | 'POST';
  /** Whether HEAD is answered like GET, without the body. */
  readonly head: boolean;
}

/** What an endpoint that wants a credential is told besides. */
export interface KeyedCall extends Call {
  /**
   * An endpoint whose rows count calls this once it has judged its parameters, before it looks anything up.
   *
   * @throws Refused `daily_allowance`
   */
  requireAllowance(): void;
  /**
   * The credential as it is now, for an answer that was waited for, whose rows count from now on.
   *
   * @throws Refused as at the beginning, `daily_allowance` too, but for the limit on requests
   */
  letInAgain(): Credential;
  readonly now: Now;
}

/** An endpoint that wants a credential, with a scope or (null) with any. */
export interface KeyedRoute extends RouteBase {
  readonly access: 'key';
  readonly scope: Scope | null;
  /** Whether it reads `detections.db`: once that is known to be damaged, the answer is 500. */
  readonly readsDetections: boolean;
  /** @throws Refused */
  answer(call: KeyedCall, credential: Credential): Answer | Promise<Answer>;
}

/** What an endpoint for anybody is told besides. */
export interface OpenCall extends Call {
  /** One that reads credentials itself calls this with the key id that they claim: for the log. */
  claim(keyId: string): void;
}

/** An endpoint for anybody. */
export interface OpenRoute extends RouteBase {
  readonly access: 'open';
  /** @throws Refused */
  answer(call: OpenCall): Answer | Promise<Answer>;
}

export type Route = KeyedRoute | OpenRoute;

export type Found = { readonly kind: 'route'; readonly route: Route } | Unrouted;

export type Unrouted = { readonly kind: 'no_path' } | { readonly kind: 'no_method'; readonly allow: string };

/** @returns what finds the route of a path (without its query) and a method */
export function createRouteTable(routes: readonly Route[]): (path: string, method: string) => Found {
  const exact = new Map<string, Route>();
  const varying = new Map<string, Route>();
  for (const route of routes) {
    if (route.path.endsWith('}')) varying.set(route.path.slice(0, route.path.indexOf('{')), route);
    else exact.set(route.path, route);
  }
  return (path, method) => {
    const route = exact.get(path) ?? varyingRoute(varying, path);
    if (route === undefined) return { kind: 'no_path' };
    if (method === route.method || (method === 'HEAD' && route.head)) return { kind: 'route', route };
    return { kind: 'no_method', allow: route.head ? `${route.method}, HEAD` : route.method };
  };
}

export function unroutedProblem(found: Unrouted): Problem {
  return found.kind === 'no_path'
    ? { code: 'not_found', detail: 'No endpoint exists at this path.' }
    : { code: 'method_not_allowed', detail: `This endpoint supports only ${found.allow}.` };
}

function varyingRoute(varying: ReadonlyMap<string, Route>, path: string): Route | undefined {
  const slash = path.lastIndexOf('/') + 1;
  // A last segment without content is a trailing slash.
  return slash === path.length ? undefined : varying.get(path.slice(0, slash));
}

/** The path and query of a request target; of an absolute one (RFC 9112, 3.2.2) what follows the authority. */
export function splitTarget(target: string): { path: string; query: string } {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
  const mark = local.indexOf('?');
  if (mark < 0) return { path: local === '' ? '/' : local, query: '' };
  return { path: mark === 0 ? '/' : local.slice(0, mark), query: local.slice(mark + 1) };
}
