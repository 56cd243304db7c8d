/** Configurations with accounts, subscriptions and keys, in the test file's own folder. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { succeed } from './command.ts';
import { testFolder } from './test-folder.ts';

export const folder = testFolder();

export type Generated = Readonly<{ id: string; key: string; hash: string; toml: string }>;

let configs = 0;

export function written(text: string | Uint8Array): string {
  configs += 1;
  const file = join(folder, `${configs}.toml`);
  writeFileSync(file, text);
  return file;
}

export const json = async (...args: string[]) => JSON.parse(succeed([...args, '--json']).stdout);

export const generated = async (): Promise<Generated> => json('key', 'generate');

export const ACCOUNT = '[[accounts]]\nid = "acme"\nname = "Acme News"\n';

export const SUBSCRIPTION = '[[subscriptions]]\nid = 7001\naccount = "acme"\n';

export const TERMS =
  'account = "acme"\nname = "Dashboard"\nscopes = ["detections:read"]\nsubscriptions = [7001]\n';

export const HASH = '0'.repeat(64);

export const KEY = `[[keys]]\nid = "abcdefghij23"\nhash = "${HASH}"\n${TERMS}`;
