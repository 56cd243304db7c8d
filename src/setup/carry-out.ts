/** Writes what was planned, or takes it back; an existing configuration, and what somebody changed, stays. */
import { existsSync, lstatSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import path from 'node:path';
import { Refused } from '../refused.ts';
import { nextSteps, stepsAfterUndo } from './next-steps.ts';
import { marked, placeFile, removeFile, stateOf } from './own-file.ts';
import {
  below,
  ENABLED_PATH,
  type PlannedFile,
  planSetup,
  type SetupChoices,
  SYSUSERS_PATH,
  UNIT_PATH,
} from './plan.ts';

export interface SetupFile {
  readonly what: PlannedFile['what'];
  readonly path: string;
  readonly outcome: 'written' | 'renewed' | 'unchanged' | 'kept' | 'removed' | 'absent';
  /** Why it was kept. */
  readonly reason?: string;
  /** In a dry run: what it would hold. */
  readonly text?: string;
}

/** As `--json` prints it. */
export interface SetupResult {
  readonly dry_run: boolean;
  readonly files: readonly SetupFile[];
  /** What was asked for and does not hold, since the configuration that is there says otherwise. */
  readonly not_applied: readonly string[];
  /** Lines for a shell; comments begin with #. */
  readonly next: readonly string[];
}

/** A folder of ours, which goes when it is empty. */
const OWN_FOLDER = '/etc/wirewatch';
const DATA_FOLDER_MODE = 0o700;

/** @throws Refused for wrong choices, and where something cannot be read or written */
export function setUp(choices: SetupChoices, isDry: boolean): SetupResult {
  const plan = planSetup(choices);
  const isNew = choices.service === null && !isDry;
  if (isNew) mkdirSync(below(choices.root, choices.data), { recursive: true, mode: DATA_FOLDER_MODE });
  const files = plan.files.map((planned) => place(planned, choices.root, isDry));
  return { dry_run: isDry, files, not_applied: plan.notApplied, next: nextSteps(choices, plan) };
}

function place({ what, path, text }: PlannedFile, root: string, isDry: boolean): SetupFile {
  const file = below(root, path);
  const state = stateOf(file);
  const content = marked(text);
  const shown = isDry ? { text: content } : {};
  if (state === 'absent') {
    if (!isDry) placeFile(file, content);
    return { what, path, outcome: 'written', ...shown };
  }
  if (what === 'configuration')
    return { what, path, outcome: 'kept', reason: 'a configuration is never written over' };
  if (state !== 'own') return { what, path, outcome: 'kept', reason: REASONS[state] };
  if (readFileSync(file, 'utf8') === content) return { what, path, outcome: 'unchanged', ...shown };
  if (!isDry) placeFile(file, content);
  return { what, path, outcome: 'renewed', ...shown };
}

const REASONS = {
  changed: 'it was changed since setup made it',
  foreign: 'setup did not make it',
};

/** @throws Refused while the service is enabled, and where something cannot be removed */
export function takeBack(choices: SetupChoices, isDry: boolean): SetupResult {
  const { root, service, config } = choices;
  const enabled = below(root, ENABLED_PATH);
  if (service !== null && lstatSync(enabled, { throwIfNoEntry: false }) !== undefined) {
    throw new Refused(
      'failed',
      `the service is enabled (${enabled}). First run: systemctl ${root === '/' ? 'disable --now' : `--root=${root} disable`} wirewatch`,
    );
  }
  const ours: [PlannedFile['what'], string][] = [['configuration', config]];
  if (service !== null) ours.push(['unit', UNIT_PATH], ['user', SYSUSERS_PATH]);
  const files = ours.map(([what, path]) => remove(what, path, root, isDry));
  const folder = below(root, OWN_FOLDER);
  if (!isDry && path.dirname(config) === OWN_FOLDER && existsSync(folder)) removeIfEmpty(folder);
  const hasRemoved = files.some(({ outcome }) => outcome === 'removed');
  return { dry_run: isDry, files, not_applied: [], next: hasRemoved ? stepsAfterUndo(choices) : [] };
}

function remove(what: PlannedFile['what'], path: string, root: string, isDry: boolean): SetupFile {
  const file = below(root, path);
  const state = stateOf(file);
  if (state === 'absent') return { what, path, outcome: 'absent' };
  if (state !== 'own') return { what, path, outcome: 'kept', reason: REASONS[state] };
  if (!isDry) removeFile(file);
  return { what, path, outcome: 'removed' };
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Something else is in it, or it may not be removed: it stays.
  }
}
