/** For tests of `wirewatch pull`: its arguments, its copy, and a service without rows. */
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Appliance } from './appliance.ts';
import { listen } from './free-port.ts';
import { inFolder } from './program.ts';

/** The arguments of a pull from an appliance, with its key in a file of the folder. */
export function pullArgs(
  { key, serving }: Pick<Appliance, 'key' | 'serving'>,
  folder: string,
  ...more: string[]
): string[] {
  writeFileSync(join(folder, 'key'), `${key}\n`);
  return ['pull', '--base-url', serving().url, '--key-file', join(folder, 'key'), ...more];
}

/** Runs SQL on a copy. @returns the rows of a SELECT */
export function sqlIn(path: string, sql: string): Record<string, unknown>[] {
  using db = new DatabaseSync(path);
  if (/^SELECT/.test(sql)) return db.prepare(sql).all();
  db.exec(sql);
  return [];
}

/** A subscription as in the response of /v1/me. */
export function subscription(id: number, ...content_types: string[]) {
  const start = new Date().toISOString();
  return { id, content_types, data_starts: Object.fromEntries(content_types.map((type) => [type, start])) };
}

/** The first responses of a service: status, headers, and what happens before. */
export type Responses = [number, Record<string, string>, (() => void)?][];

/**
 * A service without rows, which records every request except those for /v1/me.
 *
 * @param responses for the next recorded requests; later ones succeed
 */
export async function withService(
  subscriptions: object[],
  responses: Responses,
  use: (to: string[], folder: string, requests: string[], responses: Responses) => Promise<void>,
): Promise<void> {
  const page = JSON.stringify({ data: [], next_cursor: 'abc', has_more: false, as_of: null });
  const requests: string[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const isMe = request.url?.includes('/v1/me') === true;
    if (!isMe) requests.push(request.url ?? '');
    const [status, headers, before] = (isMe ? undefined : responses.shift()) ?? [200, {}];
    before?.();
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    const body = isMe ? JSON.stringify({ subscriptions, data_gaps: {} }) : page;
    response.end(status === 200 ? body : JSON.stringify({ detail: `because of ${status}` }));
  });
  const port = await listen(server);
  try {
    await inFolder(async (folder) => {
      writeFileSync(join(folder, 'key'), 'ww_live_x');
      const to = ['pull', '--base-url', `http://127.0.0.1:${port}`, '--key-file', join(folder, 'key')];
      await use(to, folder, requests, responses);
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
