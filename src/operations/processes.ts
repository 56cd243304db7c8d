/** Operations on the whole machine: a backup and a verification, by own commands in processes of low priority; taking over. */
import { counted, grouped } from '../counted.ts';
import type { OwnProcess, Printed } from '../own-process.ts';
import { failed, reasonOf } from '../refused.ts';
import { act, type Context, noted } from './operation.ts';

const running = new Set<OwnProcess>();

export const PROCESS_OPERATIONS = [
  act('backup', {
    summary: 'bring the copy up to date',
    examples: [],
    job: () => [''],
    form: { label: 'Back up now', will: 'The copy is brought up to date. Reads and ingest continue.' },
    async run(context) {
      const { dataFolder, ingest, copy } = context.config;
      if (copy.to === '')
        throw failed('no copy is kept: set [copy] to in the configuration, and restart Wirewatch.');
      const args = ['backup', '--data', dataFolder, '--drop', ingest.drop];
      // As an argument, it would let a copy begin in a place that had one and is empty.
      const printed = await inProcess(context, 'backup', args, {
        WIREWATCH_COPY_TO: copy.to,
        WIREWATCH_COPY_ENDPOINT: copy.endpoint,
        WIREWATCH_COPY_REGION: copy.region,
        WIREWATCH_COPY_CREDENTIALS: copy.credentials,
      });
      const bytes = grouped(Number(printed.written));
      return { value: printed, done: `${printed.path} is up to date: ${bytes} bytes written.` };
    },
  }),
  act('verify', {
    summary: 'compare the databases with their logs',
    examples: [],
    job: () => [''],
    form: {
      label: 'Verify now',
      will: 'The log is read to its end and the database compared with it. This may take minutes; reads and ingest continue.',
    },
    async run(context) {
      const printed = await inProcess(context, 'scrub', ['verify', '--data', context.config.dataFolder]);
      if (printed.ok === true) return { value: printed, done: 'The databases match their logs.' };
      const count = Array.isArray(printed.findings) ? printed.findings.length : 0;
      const done =
        count > 0
          ? `${counted(count, 'kind')} of damage found. Run wirewatch verify to see all.`
          : `Not everything could be compared: ${printed.not_compared}.`;
      return { value: printed, done, failed: true };
    },
  }),
  act('promote', {
    summary: 'make this standby the writer: it ingests from now on, and the old writer stops when it notices',
    help: `The standby reads what the copy has, and takes the next number in the log; whoever has that is the writer. The old writer
finds the number taken: it stops ingest, and answers 503. What it ingested and had not copied is lost: versions go up
by 1,000, positions continue a year ahead, and archived files without a record are read again. With [copy] wait,
nothing is lost, and both continue.`,
    examples: ['promote', 'promote --data /var/lib/wirewatch'],
    job: () => [''],
    form: {
      label: 'Make this machine the writer',
      will: 'This standby takes over: it ingests from now on. The old writer notices that within seconds of reaching the copy, stops ingest and answers 503. What it read and had not copied is lost, unless copy.wait is set; clients are told that versions went up.',
      isGrave: true,
    },
    async run(context) {
      if (!(await context.promote()))
        return {
          value: { role: 'writer', promoted: false },
          done: 'This machine is the writer already.',
        };
      const promoted = { value: { role: 'writer', promoted: true }, done: 'This machine is the writer now.' };
      // Nothing undoes it where the audit trail cannot take it.
      try {
        noted(context, { kind: 'promote' });
        return promoted;
      } catch (error) {
        return { ...promoted, warning: `The audit trail does not have this promotion: ${reasonOf(error)}` };
      }
    },
  }),
];

export async function endProcesses(): Promise<void> {
  await Promise.all([...running].map((process) => process.giveUp()));
}

/** @param settings that no argument gives @returns what the command printed @throws Refused `failed` with its reason */
async function inProcess(
  context: Context,
  kind: string,
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Printed> {
  noted(context, { kind });
  const { runCommand } = await import('../own-process.ts');
  const process = runCommand(args, settings);
  running.add(process);
  return process.printed.finally(() => running.delete(process));
}
