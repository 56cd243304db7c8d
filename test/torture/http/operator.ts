/** Runs valid and invalid commands of an operator, and searches their output for secrets. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from '../../support/program.ts';
import type { Tally } from '../part.ts';
import type { Secrets } from './secrets.ts';
import type { Target } from './target.ts';

/** Commands that must succeed. */
const RIGHT: readonly (readonly string[])[] = [
  ['status'],
  ['alert', 'list'],
  ['audit'],
  ['key', 'list'],
  ['account', 'show', 'agency'],
  ['ingest', 'status'],
];

/** @param folder for backups and input files */
export async function runCommands(
  target: Target,
  secrets: Secrets,
  folder: string,
  tally: Tally,
): Promise<void> {
  const { appliance, key } = target;
  const run = async (args: readonly string[], settings: Readonly<Record<string, string>> = {}) => {
    tally.count('commands');
    const command = runProgram([...args, '--data', appliance.data], { WIREWATCH_DEBUG: '1', ...settings });
    const status = await command.ended;
    const output = `${command.stdout()}\n${command.stderr()}`;
    secrets.search(`the output of wirewatch ${args[0]} ${args[1] ?? ''}`, output);
    return status;
  };
  const backups = join(folder, 'backups');
  for (const args of [
    ...RIGHT.flatMap((right) => [right, [...right, '--json']]),
    ['backup', backups],
    ['verify', backups],
    ['verify'],
  ]) {
    const status = await run(args);
    if (status !== 0) tally.failures.push(`wirewatch ${args.join(' ')} ended with ${status}, not 0`);
  }
  await run(['check']);
  const { commandsWithSecrets, address, password } = wrongCommands(target, folder);
  for (const args of commandsWithSecrets) await run(args);
  await run(['check'], { WIREWATCH_SERVER_BASE_URL: address, WIREWATCH_ADMIN_HOST: password });
  await run(['status'], { WIREWATCH_KEYS_PREFIX: key });
}

/** Commands with a secret in the wrong place. @param folder for their input files */
function wrongCommands({ facts, key }: Target, folder: string) {
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
  const commandsWithSecrets: readonly (readonly string[])[] = [
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
  return { commandsWithSecrets, address, password };
}
