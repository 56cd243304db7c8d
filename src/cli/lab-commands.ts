/** `wirewatch lab clock`, `drop` and the others: clients of the running lab, made from the table of its actions. */

import { type Command, Option } from 'commander';
import { ACTIONS, type ActionName, type Member } from '../lab/actions.ts';
import { CONTROL } from '../lab/control.ts';
import { Refused, reasonOf } from '../refused.ts';
import { dataFolder } from '../store/folder.ts';
import { readRunning } from '../store/noted-address.ts';
import { resolveDataFolder } from './data-folder.ts';
import { commonOptions } from './options.ts';
import { print } from './output.ts';

export function registerLabCommands(lab: Command): void {
  for (const [name, { summary, argument }] of Object.entries(ACTIONS)) {
    if (name === 'faults') continue;
    const command = lab.command(name).description(optionText(summary));
    if (name === 'clock') registerClock(command);
    else registerAction(command, name as ActionName, argument);
  }
  const fault = lab.command('fault').description('add, list and remove faults of answers');
  const add = fault.command('add').description(optionText(ACTIONS.faults.summary));
  registerAction(add, 'faults', null);
  fault
    .command('list')
    .description('list the faults, with how often each has fired')
    .action((_options, self: Command) => ask(self, 'GET', 'faults'));
  fault
    .command('clear')
    .description('remove a fault, or all of them')
    .argument('[id]', 'id of the fault')
    .action((id: string | undefined, _options, self: Command) =>
      ask(self, 'DELETE', id === undefined ? 'faults' : `faults/${encodeURIComponent(id)}`),
    );
  lab
    .command('report')
    .description('print what clients did, request by request, and what fired')
    .option('--after <number>', 'only requests with greater numbers', '0')
    .option('--clear', 'then forget them')
    .action(async ({ after, clear }: { after: string; clear?: boolean }, self: Command) => {
      await ask(self, 'GET', `report?after=${encodeURIComponent(after)}`);
      if (clear === true) await call(self, 'DELETE', 'report');
    });
}

/** `+26h` and `-1d` move it by so much; a time moves it there; nothing shows it. */
function registerClock(command: Command): void {
  command
    .argument(
      '[when]',
      'how far, such as +26h, or where to, such as 2026-03-29T00:00Z (default: show the clock)',
    )
    .allowUnknownOption()
    .action((when: string | undefined, _options, self: Command) => {
      if (when === undefined) return ask(self, 'GET', 'clock');
      return ask(self, 'POST', 'clock', /^\d{4}-/.test(when) ? { to: when } : { advance: when });
    });
}

function registerAction(command: Command, name: ActionName, argument: string | null): void {
  const { body } = ACTIONS[name];
  const members: Readonly<Record<string, Member>> = body.properties;
  const required: readonly string[] = body.required ?? [];
  if (argument !== null) command.argument(`<${argument}>`, optionText(members[argument]?.description ?? ''));
  for (const [member, schema] of Object.entries(members)) {
    if (member === argument) continue;
    const value =
      schema.type === 'boolean' ? '' : member === 'used' ? ' [rows]' : ` <${placeholder(schema)}>`;
    const option = new Option(
      `--${member.replaceAll('_', '-')}${value}`,
      optionText(schema.description ?? ''),
    );
    command.addOption(option.makeOptionMandatory(required.includes(member)));
  }
  command.action((...given: unknown[]) => {
    const self = given.at(-1) as Command;
    const values: Record<string, unknown> = argument === null ? {} : { [argument]: given[0] };
    const options: Record<string, unknown> = self.opts();
    for (const [member, schema] of Object.entries(members)) {
      const value =
        values[member] ?? options[member.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())];
      // `--used` alone means the default.
      const isDefault = value === undefined || (value === true && schema.type !== 'boolean');
      if (!isDefault) values[member] = typed(value);
    }
    return ask(self, 'POST', name, values);
  });
}

/** Numbers as numbers; the lab says what it expected of all else. */
function typed(value: unknown): unknown {
  return typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}

function placeholder(schema: Member): string {
  if (schema.type === 'integer' || schema.type === 'number') return 'number';
  return Array.isArray(schema.anyOf) ? 'name' : 'value';
}

/** A description of the table as the help of a command or an option. */
function optionText(text: string): string {
  return text
    .replace(/\.$/, '')
    .replace(/\. Default: (.*)$/, ' (default: $1)')
    .replace(/^[A-Z](?=[a-z]+ )/, (letter) => letter.toLowerCase());
}

async function ask(command: Command, method: string, path: string, body?: unknown): Promise<void> {
  const value = await call(command, method, path, body);
  print(value, { json: commonOptions(command).json, text: () => JSON.stringify(value, null, 2) });
}

/** @throws Refused `failed` where no lab runs; with what the lab says where it refuses */
function call(command: Command, method: string, path: string, body?: unknown): Promise<unknown> {
  return callLab(runningLab(command).url, method, path, body);
}

/** @throws Refused `failed` where no lab runs */
export function runningLab(command: Command): { readonly root: string; readonly url: string } {
  const root = resolveDataFolder(commonOptions(command), { kind: 'lab' });
  const running = readRunning(dataFolder(root));
  if (running.kind === 'running' && running.url !== null) return { root, url: running.url };
  throw new Refused(
    'failed',
    `no lab runs in ${root}. Start one with: wirewatch lab, or name its folder with --data`,
  );
}

/** @throws Refused with what the lab says where it refuses */
export async function callLab(url: string, method: string, path: string, body?: unknown): Promise<unknown> {
  const sent =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const response = await fetch(`${url}${CONTROL}/${path}`, { method, ...sent }).catch((error: unknown) => {
    throw new Refused('failed', `the lab at ${url} does not answer: ${reasonOf(error)}`, {
      cause: error,
    });
  });
  const answer: unknown = await response.json();
  if (response.ok) return answer;
  const detail =
    typeof answer === 'object' && answer !== null && 'detail' in answer ? String(answer.detail) : '';
  throw new Refused(response.status === 400 ? 'usage' : 'failed', detail);
}
