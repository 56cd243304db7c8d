/** The manual: its topics, in the order in which they are listed. Each is a Markdown file of this folder. */
import { packedText } from '../packed.ts';

/** `name`: that of its file, `<name>.md`, and the argument of `wirewatch manual`; `title`: its contents, on one line. */
export type Topic = (typeof TOPICS)[number];

/** By part, the titles by name. */
const CONTENTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'Getting started': {
    concepts: 'detections, the change stream, exports, windows',
    'quick-start': 'from nothing to the first page',
    glossary: 'every other term in one line',
  },
  Exports: {
    'your-exports': 'from a CSV dump to a running feed, step by step',
    'export-format': 'the files in the drop folder: names, rows, columns',
  },
  Clients: {
    'client-guide': 'writing a client',
    'change-stream': 'parameters, answers, errors, waiting, complete clients',
    periods: 'the current state of a period',
    tokens: 'access tokens in place of a key (OAuth 2.0)',
    pull: 'the client that comes with Wirewatch',
    'testing-your-client': 'the lab, with curl and pytest; the exam',
  },
  Operating: {
    installation: 'the executable: install, requirements, update, downgrade',
    service: 'systemd, containers, other supervisors',
    operations: 'daily work: files, replay, removing customers, damage',
    troubleshooting: 'by symptom: what to check, likely causes, the fix',
    alerts: 'every alert with what to do, health, missing windows',
    'log-lines': "the program's log: rotation, every warning and error",
    console: 'the state in a browser, and what it can do',
    monitoring: 'metrics for Prometheus, Grafana',
    backup: 'the copy: where to keep it, restore, what is lost',
    standby: 'a second machine that takes over',
    'disaster-recovery': 'when the machine is lost',
    security: 'threat model, keys, TLS, proxies, the secret, the audit trail',
    commands: 'every command with its options',
    settings: 'every setting, its default, and where to set it',
    preseeding: 'accounts, subscriptions and keys in the configuration',
    files: 'what is in the data folder and the drop folder',
    growth: 'disk space to plan for, memory, limits',
  },
  Internals: {
    speed: 'what was measured, compared with what',
    'log-format': 'the format of the log, with a reader in Python',
    invariants: 'what must always hold, its tests, what was done to break it',
  },
};

export const PARTS = Object.entries(CONTENTS).map(([title, topics]) => ({
  title,
  topics: Object.entries(topics).map(([name, title]) => ({ name, title })),
}));

export const TOPICS = PARTS.flatMap(({ topics }) => topics);

export const markdownOf = ({ name }: Topic) => packedText('src/manual', `${name}.md`);
