/** A proxy that injects faults of proxies and networks, in a fixed order, and forwards everything else. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export type Fault =
  | { readonly kind: 'none' }
  /** The connection ends before the response begins. */
  | { readonly kind: 'no answer' }
  /** The connection ends in the middle of a body with a length, or in chunks. */
  | { readonly kind: 'cut body'; readonly chunked: boolean }
  /** Half of the body, as if complete. */
  | { readonly kind: 'half a body' }
  /** A response by the proxy, in HTML. */
  | { readonly kind: 'status'; readonly status: number; readonly retryAfter?: string }
  /** In the middle of the body, a callback runs; then the connection ends. */
  | { readonly kind: 'event'; readonly run: () => void };

export interface FaultyProxy {
  readonly url: string;
  /** Path and query of each request. */
  readonly requests: readonly string[];
  close(): void;
}

export interface FaultyProxyOptions {
  readonly target: string;
  /** One for each request; later requests are forwarded. */
  readonly faults: readonly Fault[];
  /** Replaces the `limit` of every request, to get many pages. */
  readonly limit?: number;
}

export async function startFaultyProxy(options: FaultyProxyOptions): Promise<FaultyProxy> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const fault = options.faults[requests.length] ?? { kind: 'none' };
    requests.push(request.url ?? '');
    forward(options, request, response, fault).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function forward(
  { target, limit }: FaultyProxyOptions,
  request: IncomingMessage,
  response: ServerResponse,
  fault: Fault,
): Promise<void> {
  const sent = await text(request);
  if (fault.kind === 'no answer') {
    response.destroy();
    return;
  }
  if (fault.kind === 'status') {
    const { status, retryAfter } = fault;
    response.writeHead(status, {
      'content-type': 'text/html',
      ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
    });
    response.end(`<html>\n<h1>${status}</h1>\n</html>`);
    return;
  }
  const url = new URL(request.url ?? '', target);
  if (limit !== undefined && url.searchParams.has('limit')) url.searchParams.set('limit', `${limit}`);
  const { authorization, 'content-type': contentType } = request.headers;
  const upstream = await fetch(url, {
    method: request.method ?? 'GET',
    headers: {
      ...(authorization === undefined ? {} : { authorization }),
      ...(contentType === undefined ? {} : { 'content-type': contentType }),
    },
    ...(sent === '' ? {} : { body: sent }),
  });
  const body = Buffer.from(await upstream.arrayBuffer());
  const half = body.subarray(0, Math.ceil(body.length / 2));
  const type = { 'content-type': upstream.headers.get('content-type') ?? '' };
  switch (fault.kind) {
    case 'none':
      response.writeHead(upstream.status, { ...type, 'content-length': body.length }).end(body);
      return;
    case 'half a body':
      response.writeHead(upstream.status, { ...type, 'content-length': half.length }).end(half);
      return;
    case 'cut body':
      response.writeHead(upstream.status, fault.chunked ? type : { ...type, 'content-length': body.length });
      response.write(half, () => response.destroy());
      return;
    case 'event':
      response.writeHead(upstream.status, { ...type, 'content-length': body.length });
      response.write(half, () => {
        fault.run();
        response.destroy();
      });
  }
}
