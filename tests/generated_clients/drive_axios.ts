// What an application does with the client that a stock generator makes (OpenAPI Generator, typescript-axios): as drive.ts does.
import { AxiosError } from "axios";
import {
  Configuration,
  DictionariesApi,
  QueuesApi,
  RegistersApi,
  ServiceApi,
  type EnqueueBody,
  type Problem,
} from "./client";

const [url = "", phase = ""] = process.argv.slice(2);
const deadlineS = phase === "alone" ? 1 : 20;
const authorised = (token: string) => new Configuration({ basePath: url, accessToken: token });
const configuration = authorised(process.env.QUORATE_TOKEN ?? "");
const queues = new QueuesApi(configuration);
const registers = new RegistersApi(configuration);
const dictionaries = new DictionariesApi(configuration);
const name = "axios";

async function told(asked: Promise<unknown>) {
  try {
    await asked;
  } catch (error) {
    const problem = (error as AxiosError<Problem>).response?.data;
    if (problem !== undefined) return { type: problem.type, status: problem.status, definite: problem.definite };
    throw error;
  }
  throw new Error("expected a problem");
}

async function queue() {
  const add = async (enqueueBody: EnqueueBody, idempotencyKey?: string) =>
    (await queues.enqueue({ name, enqueueBody, idempotencyKey })).data.enqueued;
  const items = [{ job: 1 }, "two"];
  const added = [await add({ items }, "axios-1"), await add({ items }, "axios-1"), await add({ item: null })];
  const size = (await queues.getQueue({ name })).data.size;
  const front = (await queues.peekQueue({ name })).data.items;
  const taken = (await queues.dequeue({ name, dequeueBody: { max: 10 } })).data.items;
  const empty = (await queues.dequeue({ name })).data.items;
  return { added, size, front, taken, empty };
}

async function leases() {
  const name = "axios-leased";
  await queues.enqueue({ name, enqueueBody: { item: { job: 1 } } });
  const seen: unknown[] = [];
  const tokens: string[] = [];
  for (let time = 0; time < 2; time++) {
    const lease = (await queues.acquire({ name, acquireBody: { lease_s: 60 } })).data.leases[0]!;
    seen.push([lease.item, lease.deliveries]);
    tokens.push(lease.token);
    if (time === 0) await queues.releaseLeases({ name, releaseBody: { tokens } });
  }
  const { lost } = (await queues.ackLeases({ name, tokensBody: { tokens: tokens.slice(0, 1) } })).data;
  await queues.rejectLeases({ name, rejectBody: { tokens: tokens.slice(1) } });
  const { letters } = (await queues.getDeadLetters({ name })).data;
  const { held, waiting, dead } = (await queues.getLeases({ name })).data;
  return {
    seen,
    lost: lost.length === 1 && lost[0] === tokens[0],
    reasons: letters.map((each) => each.reason),
    counted: [held, waiting, dead],
  };
}

async function register() {
  const swap = async (old: unknown, value: unknown) => {
    const compareAndSetBody = { old, new: value };
    return (await registers.compareAndSetRegister({ name, compareAndSetBody })).data.swapped;
  };
  const swapped = [await swap(null, "ann"), await swap(null, "bob"), await swap("ann", { is: "bob" })];
  return { swapped, value: (await registers.readRegister({ name })).data.value };
}

async function dictionary() {
  const entry = { name, key: "ada/1 & co" };
  const [is36, is37] = [{ age: 36 }, { age: 37 }];
  const put = await dictionaries.putEntry({ ...entry, valueBody: { value: is36 } });
  const absent = await dictionaries.putEntryIfAbsent({ ...entry, valueBody: { value: 0 } });
  const swapped = await dictionaries.compareAndSetEntry({
    ...entry,
    compareAndSetBody: { old: is36, new: is37 },
  });
  const got = await dictionaries.getEntry(entry);
  const all = await dictionaries.getDictionary({ name });
  const kept = await dictionaries.compareAndDeleteEntry({ ...entry, compareAndDeleteBody: { old: is36 } });
  const gone = await dictionaries.deleteEntry(entry);
  return {
    put: put.status,
    stored: absent.data.stored,
    swapped: swapped.data.swapped,
    value: got.data.value,
    items: all.data.items,
    kept: kept.data.deleted === false,
    deleted: gone.status,
    missing: await told(dictionaries.getEntry(entry)),
  };
}

async function errors() {
  const enqueueBody = { item: "another" };
  return {
    reused: await told(queues.enqueue({ name, enqueueBody, idempotencyKey: "axios-1" })),
    stranger: await told(new ServiceApi(authorised("wrong")).getCluster()),
    named: await told(registers.readRegister({ name: ".hidden" })),
  };
}

async function service() {
  const asked = new ServiceApi(configuration);
  const { status } = (await asked.getReadiness()).data;
  const { document } = (await asked.getCluster()).data;
  const { definite } = (await asked.getProblemType({ name: "outcome-unknown" })).data;
  return { ready: status, replicas: document.replicas.map((each) => each.id), definite };
}

async function write() {
  try {
    const asked = { name: "axios-fate", valueBody: { value: "written" }, deadlineS };
    return { status: (await registers.writeRegister(asked)).status };
  } catch (error) {
    return told(Promise.reject(error));
  }
}

async function take() {
  try {
    return { items: (await queues.dequeue({ name, deadlineS })).data.items };
  } catch (error) {
    return told(Promise.reject(error));
  }
}

const all = async () => ({
  queue: await queue(),
  leases: await leases(),
  register: await register(),
  dictionary: await dictionary(),
  errors: await errors(),
  service: await service(),
});
const few = async () => ({ write: await write(), take: await take() });
void (phase === "all" ? all() : few()).then((answers) => console.log(JSON.stringify(answers)));
