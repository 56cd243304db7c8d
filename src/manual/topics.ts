/** The manual: its topics, in the order in which they are listed. Each is a Markdown file of this folder. */
import alerts from './alerts.md' with { type: 'text' };
import backup from './backup.md' with { type: 'text' };
import changeStream from './change-stream.md' with { type: 'text' };
import clientGuide from './client-guide.md' with { type: 'text' };
import commands from './commands.md' with { type: 'text' };
import concepts from './concepts.md' with { type: 'text' };
import consoleTopic from './console.md' with { type: 'text' };
import disasterRecovery from './disaster-recovery.md' with { type: 'text' };
import exportFormat from './export-format.md' with { type: 'text' };
import files from './files.md' with { type: 'text' };
import glossary from './glossary.md' with { type: 'text' };
import growth from './growth.md' with { type: 'text' };
import installation from './installation.md' with { type: 'text' };
import invariants from './invariants.md' with { type: 'text' };
import logFormat from './log-format.md' with { type: 'text' };
import logLines from './log-lines.md' with { type: 'text' };
import monitoring from './monitoring.md' with { type: 'text' };
import operations from './operations.md' with { type: 'text' };
import periods from './periods.md' with { type: 'text' };
import preseeding from './preseeding.md' with { type: 'text' };
import pull from './pull.md' with { type: 'text' };
import quickStart from './quick-start.md' with { type: 'text' };
import security from './security.md' with { type: 'text' };
import service from './service.md' with { type: 'text' };
import settings from './settings.md' with { type: 'text' };
import speed from './speed.md' with { type: 'text' };
import testingYourClient from './testing-your-client.md' with { type: 'text' };
import tokens from './tokens.md' with { type: 'text' };
import troubleshooting from './troubleshooting.md' with { type: 'text' };
import yourExports from './your-exports.md' with { type: 'text' };

export interface Topic {
  /** The name of its file without `.md`, and the argument of `wirewatch manual`. */
  readonly name: string;
  /** Its contents, on one line. */
  readonly title: string;
  readonly markdown: string;
}

type Line = readonly [name: string, title: string, markdown: string];

const CONTENTS: Readonly<Record<string, readonly Line[]>> = {
  'Getting started': [
    ['concepts', 'detections, versions, the change stream, exports, windows', concepts],
    ['quick-start', 'from nothing to the first page of the change stream', quickStart],
    ['installation', 'the executable: requirements, install, update, build', installation],
    ['service', 'running it permanently: systemd, containers, other supervisors', service],
  ],
  Exports: [
    ['your-exports', 'from a CSV dump to a running feed, step by step', yourExports],
    ['export-format', 'the files in the drop folder: names, rows, columns', exportFormat],
  ],
  Clients: [
    ['client-guide', 'writing a client: the copy, the stream, errors, testing', clientGuide],
    [
      'testing-your-client',
      'bad days on command: the lab, with curl, pytest and node:test; the exam',
      testingYourClient,
    ],
    ['change-stream', 'the change stream: parameters, answers, errors, a complete client', changeStream],
    ['periods', 'the current state of a period', periods],
    ['tokens', 'access tokens in place of a key (OAuth 2.0)', tokens],
    ['pull', 'the client that comes with Wirewatch: a copy that stays up to date', pull],
  ],
  Operating: [
    ['operations', 'daily work: failed and held files, replay, removing customers, damage', operations],
    ['troubleshooting', 'by symptom: what to check, likely causes, the fix', troubleshooting],
    ['alerts', 'every alert with what to do, health, missing windows', alerts],
    ['log-lines', "the program's log: rotation, every warning and error", logLines],
    ['console', 'the console in a browser: links, sessions, what it can do', consoleTopic],
    ['monitoring', 'metrics for Prometheus, the administration port, Grafana', monitoring],
    ['backup', 'backup, schedule, rehearsal, restore', backup],
    ['disaster-recovery', 'when the machine is lost: a second one takes over', disasterRecovery],
    ['security', 'threat model, keys, addresses, TLS, proxies, the secret, the audit trail', security],
  ],
  Reference: [
    ['glossary', 'every term in one line', glossary],
    ['files', 'the data folder and the drop folder', files],
    ['commands', 'every command with its options', commands],
    ['settings', 'every setting, its default, and where to set it', settings],
    ['preseeding', 'accounts, subscriptions and keys in the configuration', preseeding],
    ['log-format', 'the format of the log, with a reader in Python', logFormat],
    ['invariants', 'what must always hold, the test that holds it, what was done to break it', invariants],
    ['speed', 'what was measured, compared with what', speed],
    ['growth', 'disk space to plan for, memory, limits', growth],
  ],
};

export const PARTS = Object.entries(CONTENTS).map(([title, topics]) => ({
  title,
  topics: topics.map(([name, title, markdown]): Topic => ({ name, title, markdown })),
}));

export const TOPICS: readonly Topic[] = PARTS.flatMap(({ topics }) => topics);
