/**
 * What can be asked of a running lab: its clock, its feed, its faults and its report. The lab does it in the main thread,
 * which sends the answers (tools/lab/lab.ts); a scenario plays the same operations.
 */
import { LAB_MEMBERS, type LabName } from './lab-members.ts';
import type { Members } from './member.ts';
import { act, type Description, type Operation, reading } from './operation.ts';

/** @param examples without `lab` */
function ofLab<const Own extends Members>(
  name: LabName,
  members: Own,
  { examples, ...rest }: Omit<Description<Own, unknown>, 'members' | 'run' | 'text'>,
): Operation {
  const define = name === 'fault list' ? reading : act;
  return define<Own, unknown>(`lab ${name}`, {
    ...rest,
    members,
    examples: examples.map((line) => `lab ${line}`),
    run: async ({ lab }, values) => ({ value: await lab(name, values) }),
    text: (value) => JSON.stringify(value, null, 2),
  });
}

export const LAB = [
  ofLab('clock', LAB_MEMBERS.clock, {
    summary: 'show or move the clock. Everything that is due by then happens at once',
    operands: ['when'],
    examples: ['clock', 'clock +26h', 'clock 59m58s', 'clock 2026-03-29T00:00Z'],
    form: {
      label: 'Move the clock',
      will: 'Everything that is due by then happens at once.',
      fields: ['advance', 'to'],
    },
  }),
  ofLab('drop', LAB_MEMBERS.drop, {
    summary: 'drop export files with new detections, and wait until they are processed',
    examples: ['drop', 'drop --rows 3 --age 3d --subscription 7001'],
    form: { label: 'Drop detections', will: 'New detections reach the change stream, as from export files.' },
  }),
  ofLab('late', LAB_MEMBERS.late, {
    summary: 'drop the file of the oldest missing window; without one, of a window that was skipped',
    examples: ['late --rows 3'],
  }),
  ofLab('correct', LAB_MEMBERS.correct, {
    summary: 'rescore a detection: another score makes a new version, the same score none',
    operands: ['id'],
    examples: ['correct t.7001.123.456 --score 12'],
  }),
  ofLab('gap', LAB_MEMBERS.gap, {
    summary: 'make a window of an export missing, failed or abandoned',
    operands: ['export'],
    examples: ['gap newswire --status missing', 'gap imagewire --status failed'],
  }),
  ofLab('restore', LAB_MEMBERS.restore, {
    summary:
      'act as after a restore that lost the end of the log: versions rise by 1,000, positions continue a year ahead',
    examples: ['restore'],
  }),
  ofLab('allowance', LAB_MEMBERS.allowance, {
    summary: 'set how much of the daily row allowance of an account is used',
    examples: ['allowance --used', 'allowance --used 0'],
  }),
  ofLab('fault add', LAB_MEMBERS['fault add'], {
    summary:
      'add a fault. A request meets one at most, the first that was added. X-Wirewatch-Lab in the answer names it',
    examples: [
      'fault add --status 429 --retry-after 7 --endpoint listChanges --times 3',
      'fault add --cut-after 200',
      'fault add --duplicate --endpoint listChanges',
    ],
    form: {
      label: 'Add a fault',
      will: 'Requests of clients meet it, as often as it says.',
      fields: ['endpoint', 'status', 'code', 'retry_after', 'delay', 'cut_after', 'empty_page', 'times'],
    },
  }),
  ofLab('fault list', LAB_MEMBERS['fault list'], {
    summary: 'list the faults, with how often each has fired',
    examples: ['fault list'],
  }),
  ofLab('fault clear', LAB_MEMBERS['fault clear'], {
    summary: 'remove a fault, or all of them; print what was removed',
    operands: ['id'],
    examples: ['fault clear', 'fault clear f1'],
    form: { label: 'Remove', title: 'Remove fault', will: 'No request meets it any more.', fields: [] },
  }),
  ofLab('report', LAB_MEMBERS.report, {
    summary: 'print what clients did, request by request, and which faults they met',
    examples: ['report', 'report --after 120', 'report --clear'],
  }),
];
