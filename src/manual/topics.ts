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

interface Part {
  readonly title: string;
  readonly topics: readonly Topic[];
}

export const PARTS: readonly Part[] = [
  {
    title: 'Getting started',
    topics: [
      {
        name: 'concepts',
        title: 'detections, versions, the change stream, exports, windows',
        markdown: concepts,
      },
      {
        name: 'quick-start',
        title: 'from nothing to the first page of the change stream',
        markdown: quickStart,
      },
      {
        name: 'installation',
        title: 'the executable: requirements, install, update, build',
        markdown: installation,
      },
      {
        name: 'service',
        title: 'running it permanently: systemd, containers, other supervisors',
        markdown: service,
      },
    ],
  },
  {
    title: 'Exports',
    topics: [
      {
        name: 'your-exports',
        title: 'from a CSV dump to a running feed, step by step',
        markdown: yourExports,
      },
      {
        name: 'export-format',
        title: 'the files in the drop folder: names, rows, columns',
        markdown: exportFormat,
      },
    ],
  },
  {
    title: 'Clients',
    topics: [
      {
        name: 'client-guide',
        title: 'writing a client: the copy, the stream, errors, testing',
        markdown: clientGuide,
      },
      {
        name: 'testing-your-client',
        title: 'bad days on command: the lab, with curl, pytest and node:test; the exam',
        markdown: testingYourClient,
      },
      {
        name: 'change-stream',
        title: 'the change stream: parameters, answers, errors, a complete client',
        markdown: changeStream,
      },
      { name: 'periods', title: 'the current state of a period', markdown: periods },
      { name: 'tokens', title: 'access tokens in place of a key (OAuth 2.0)', markdown: tokens },
      {
        name: 'pull',
        title: 'the client that comes with Wirewatch: a copy that stays up to date',
        markdown: pull,
      },
    ],
  },
  {
    title: 'Operating',
    topics: [
      {
        name: 'operations',
        title: 'daily work: failed and held files, replay, removing customers, damage',
        markdown: operations,
      },
      {
        name: 'troubleshooting',
        title: 'by symptom: what to check, likely causes, the fix',
        markdown: troubleshooting,
      },
      { name: 'alerts', title: 'every alert with what to do, health, missing windows', markdown: alerts },
      {
        name: 'log-lines',
        title: "the program's log: rotation, every warning and error",
        markdown: logLines,
      },
      {
        name: 'console',
        title: 'the console in a browser: links, sessions, what it can do',
        markdown: consoleTopic,
      },
      {
        name: 'monitoring',
        title: 'metrics for Prometheus, the administration port, Grafana',
        markdown: monitoring,
      },
      { name: 'backup', title: 'backup, schedule, rehearsal, restore', markdown: backup },
      {
        name: 'disaster-recovery',
        title: 'when the machine is lost: a second one takes over',
        markdown: disasterRecovery,
      },
      {
        name: 'security',
        title: 'threat model, keys, addresses, TLS, proxies, the secret, the audit trail',
        markdown: security,
      },
    ],
  },
  {
    title: 'Reference',
    topics: [
      { name: 'glossary', title: 'every term in one line', markdown: glossary },
      { name: 'files', title: 'the data folder and the drop folder', markdown: files },
      { name: 'commands', title: 'every command with its options', markdown: commands },
      { name: 'settings', title: 'every setting, its default, and where to set it', markdown: settings },
      {
        name: 'preseeding',
        title: 'accounts, subscriptions and keys in the configuration',
        markdown: preseeding,
      },
      {
        name: 'log-format',
        title: 'the format of the log, with a reader in Python',
        markdown: logFormat,
      },
      {
        name: 'invariants',
        title: 'what must always hold, the test that holds it, what was done to break it',
        markdown: invariants,
      },
      { name: 'speed', title: 'what was measured, compared with what', markdown: speed },
      { name: 'growth', title: 'disk space to plan for, memory, limits', markdown: growth },
    ],
  },
];

export const TOPICS: readonly Topic[] = PARTS.flatMap(({ topics }) => topics);
