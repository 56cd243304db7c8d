/** Makes a standby the writer. */
import { act } from './operation.ts';

export const PROMOTE_OPERATION = act('promote', {
  summary: 'make this standby the writer: it ingests from now on, and the old writer stops when it notices',
  help: `The standby reads what the copy has, and takes the next number in the log; whoever has that is the writer. The old writer
finds the number taken: it stops ingest, and answers 503. What it ingested and had not copied is lost: versions go up
by 1,000, positions continue a year ahead, and archived files without a record are read again. With [copy] wait,
nothing is lost, and both continue.`,
  examples: ['promote', 'promote --data /var/lib/wirewatch'],
  job: () => '',
  form: {
    label: 'Make this machine the writer',
    will: 'This standby takes over: it ingests from now on. The old writer notices that within seconds of reaching the copy, stops ingest and answers 503. What it read and had not copied is lost, unless copy.wait is set; clients are told that versions went up.',
    isGrave: true,
  },
  async run(context) {
    const isNew = await context.promote();
    return {
      value: { role: 'writer', promoted: isNew },
      done: isNew ? 'This machine is the writer now.' : 'This machine is the writer already.',
    };
  },
});
