/**
 * Which endpoint a path and method belong to. The router is more forgiving than the API (`/v1/me/`, HEAD where only GET is
 * served), so this table decides, and the router only sees what the table accepts.
 */
import type { Credential } from '../auth/credential-check.ts';
import type { KeyedEndpoint, OpenEndpoint } from './description.ts';
import type { Answer, Exchange } from './exchange.ts';
import type { Problem } from './problem.ts';
import type { Service } from './service.ts';

export interface KeyedRoute extends KeyedEndpoint {
  answer(service: Service, exchange: Exchange, credential: Credential): Answer | Promise<Answer>;
}

export interface OpenRoute extends OpenEndpoint {
  answer(service: Service, exchange: Exchange): Answer | Promise<Answer>;
}

export type Route = KeyedRoute | OpenRoute;

type Unrouted = Readonly<{ problem: Problem; headers: readonly string[] }>;

export const NO_PATH: Unrouted = {
  problem: { code: 'not_found', detail: 'No endpoint exists at this path.' },
  headers: [],
};

export type FindRoute = (path: string, method: string) => Route | Unrouted;

export function createRouteTable(routes: readonly Route[]): FindRoute {
  return (path, method) => {
    const route = routes.find((one) => one.path === path || isWithin(one.path, path));
    if (route === undefined) return NO_PATH;
    if (method === route.method || (method === 'HEAD' && route.head !== undefined)) return route;
    const allow = route.head === undefined ? route.method : `${route.method}, HEAD`;
    const detail = `This endpoint supports only ${allow}.`;
    return { problem: { code: 'method_not_allowed', detail }, headers: ['Allow', allow] };
  };
}

/** Whether only the last segment, which is not empty, differs from that of a path such as `/v1/detections/{id}`. */
function isWithin(varying: string, path: string): boolean {
  const start = varying.replace(/\{\w+\}$/, '');
  return start !== varying && path.startsWith(start) && /^[^/]+$/.test(path.slice(start.length));
}

/** The last segment of a path, as sent: the value of a route such as `/v1/detections/{id}`. */
export const lastSegment = (path: string) => path.slice(path.lastIndexOf('/') + 1);

/** The path and query of a request target, which may be absolute (RFC 9112, 3.2.2). */
export function splitTarget(target: string): { path: string; query: string } {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
  const mark = local.indexOf('?');
  if (mark < 0) return { path: local === '' ? '/' : local, query: '' };
  return { path: mark === 0 ? '/' : local.slice(0, mark), query: local.slice(mark + 1) };
}
