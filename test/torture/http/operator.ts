/** Commands that an operator types, rightly and wrongly, with what they print searched for secrets. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { programCommand } from '../../support/command.ts';
import type { Secrets } from './secrets.ts';
import type { Target } from './target.ts';

/** Those that have to end well. */
const RIGHT: readonly (readonly string[])[] = [
  ['status'],
  ['alert', 'list'],
  ['log'],
  ['log', '--access'],
  ['key', 'list'],
  ['account', 'show', 'agency'],
  ['ingest', 'status'],
];

export interface OperatorOutcome {
  readonly commands: number;
  readonly failures: readonly string[];
}

/** @param folder for backups and files of the commands */
export function runCommands(
  { appliance, facts, key }: Target,
  secrets: Secrets,
  folder: string,
): OperatorOutcome {
  const failures: string[] = [];
  let commands = 0;
  const run = (args: readonly string[], settings: Readonly<Record<string, string>> = {}) => {
    commands += 1;
    const all = [...args, '--data', appliance.data];
    const { command, args: given, options } = programCommand(all, { WIREWATCH_DEBUG: '1', ...settings });
    const { status, stdout, stderr } = spawnSync(command, given, { ...options, encoding: 'utf8' });
    secrets.search(`the output of wirewatch ${args[0]} ${args[1] ?? ''}`, `${stdout}\n${stderr}`);
    return status;
  };
  const mustEndWith = (expected: number, args: readonly string[]) => {
    const status = run(args);
    if (status !== expected)
      failures.push(`wirewatch ${args.join(' ')} ended with ${status}, not ${expected}`);
  };
  const backups = join(folder, 'backups');
  for (const args of RIGHT) for (const more of [[], ['--json']]) mustEndWith(0, [...args, ...more]);
  for (const args of [
    ['backup', backups],
    ['backup', join(folder, 'backup.tar')],
    ['verify', backups],
    ['verify'],
  ])
    mustEndWith(0, args);
  run(['check']);

  const [foreign = ''] = facts.misplaced;
  const [password = ''] = facts.misplaced.slice(-1);
  const keyFile = join(folder, 'not-a-key');
  writeFileSync(keyFile, foreign);
  const config = join(folder, 'wrong.toml');
  writeFileSync(
    config,
    `[[keys]]\nid = "abcdefghij23"\nsecret_file = ${JSON.stringify(keyFile)}\naccount = "agency"\n`,
  );
  const address = `https://agency:${foreign}@127.0.0.1:1/`;
  const wrong: readonly (readonly string[])[] = [
    ['key', 'show', key],
    ['key', 'revoke', key, '--yes'],
    ['key', 'rotate', key],
    ['key', 'set', key, '--name', 'x'],
    ['account', 'show', key],
    ['key', 'create', '--account', key, '--name', 'x', '--scopes', key, '--subscriptions', key],
    ['pull', '--base-url', address, '--key-file', keyFile, '--into', join(folder, 'copy')],
    ['pull', '--base-url', `http://${facts.host}`, '--key-file', keyFile, '--into', join(folder, 'copy')],
    ['serve', '--base-url', address],
    ['serve', '--config', config],
    ['check', '--config', config],
    [key],
    [`--${key}`],
  ];
  for (const args of wrong) run(args);
  run(['check'], { WIREWATCH_SERVER_BASE_URL: address, WIREWATCH_ADMIN_HOST: password });
  run(['status'], { WIREWATCH_KEYS_PREFIX: key });
  return { commands, failures };
}
