/** Runs `wirewatch lab` in its own folder, and sends it requests. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import type { Detection } from './appliance.ts';
import { succeed } from './command.ts';
import { inFolder, runProgram } from './program.ts';
import { testFolder } from './test-folder.ts';

export type Lab = Awaited<ReturnType<typeof startLab>>;

/** Asks the API with a key. */
export function readerOf(url: string, key: string) {
  const get = (target: string, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${url}${target}`, { headers: { authorization: `Bearer ${key}`, ...headers } });
  // biome-ignore lint/suspicious/noExplicitAny: each test knows what it asked for
  const json = (response: Response): Promise<any> => response.json();
  /** The JSON body of a successful response. */
  const read = async (target: string) => {
    const response = await get(target);
    if (response.status !== 200) assert.fail(`${target}: ${response.status} ${await response.text()}`);
    return json(response);
  };
  return { get, json, read };
}

/** Starts a lab and waits until it is ready. @param folder the test's folder; the lab's data are below it */
export async function startLab(folder: string, args: readonly string[] = []) {
  const data = join(folder, 'lab');
  const ready = join(folder, 'ready.json');
  const run = runProgram(['lab', '--data', data, '--port', '0', '--ready-file', ready, ...args]);
  await run.until('the ready file', () => (existsSync(ready) ? true : undefined));
  const { url, key }: { url: string; key: string } = JSON.parse(readFileSync(ready, 'utf8'));
  const reader = readerOf(url, key);
  /** Asks for an operation of the lab, such as `fault-add`. @returns status and answer */
  const post = async (name: string, body: string, type = 'application/json') => {
    const headers = { 'content-type': type };
    const response = await fetch(`${url}/operations/lab-${name}`, { method: 'POST', body, headers });
    return [response.status, await reader.json(response)] as const;
  };
  return {
    ...{ url, key, data, run, post, ...reader },
    /** What a command on its folder prints, as JSON; fails if the command does. */
    command: async (...args: string[]) => JSON.parse(succeed([...args, '--data', data, '--json']).stdout),
    /** The value of an operation; fails if refused. */
    async control(name: string, given: object = {}) {
      const body = JSON.stringify(given);
      const [status, answer] = await post(name, body);
      assert.equal(status, 200, `${name} ${body}: ${JSON.stringify(answer)}`);
      return answer.value;
    },
    async stop(): Promise<void> {
      assert.equal(await run.stop(), 0);
    },
  };
}

/** A lab for all tests of a file, which ends with them. */
export async function sharedLab(args: readonly string[]): Promise<Lab> {
  const lab = await startLab(testFolder(), args);
  after(lab.stop);
  return lab;
}

/** Runs a test on its own lab, in its own folder. */
export const withLab = (args: readonly string[], use: (lab: Lab, folder: string) => Promise<void>) =>
  inFolder(async (folder) => {
    const lab = await startLab(folder, args);
    await use(lab, folder);
    await lab.stop();
  });

export const CHANGES = '/v1/detections/changes';
/** A time for labs: the night of a DST change in Europe. */
export const SPRING = '2026-03-29T00:00Z';
/** Reads everything that a lab has at its start. */
export const SINCE_SPRING = 'since=2026-03-28T23:59:00Z';

/** Reads every change after a start. @param start `since` or `cursor`, as in a query */
export async function follow(
  { read }: Pick<Lab, 'read'>,
  start: string,
): Promise<{ rows: Detection[]; cursor: string; as_of: string }> {
  const rows: Detection[] = [];
  for (let query = start; ; ) {
    const page = await read(`${CHANGES}?${query}&limit=1000`);
    rows.push(...page.data);
    if (!page.has_more) return { rows, cursor: page.next_cursor, as_of: page.as_of };
    query = `cursor=${page.next_cursor}`;
  }
}
