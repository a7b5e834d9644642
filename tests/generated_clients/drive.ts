// What an application does with the generated TypeScript client: `node drive.js URL PHASE`, token in QUORATE_TOKEN.
// It prints what it was answered as one line of JSON. tsc checks it against the generated types; each line below
// `@ts-expect-error` must be refused by them.
import createClient from "openapi-fetch";
import type { components, paths } from "./quorate.js";

type Problem = components["schemas"]["Problem"];

const [url = "", phase = ""] = process.argv.slice(2);
const deadline_s = phase === "alone" ? 1 : 20;
const authorised = (token: string) =>
  createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });
const client = authorised(process.env.QUORATE_TOKEN ?? "");

// The types say that an error is a problem; a program needs no cast to read `definite`.
function told(problem: Problem | undefined) {
  if (problem === undefined) throw new Error("expected a problem");
  const definite: boolean = problem.definite;
  return { type: problem.type, status: problem.status, definite };
}

async function queue() {
  const path = { name: "typescript" };
  const header = { "Idempotency-Key": "typescript-1" };
  const body = { items: [{ job: 1 }, "two"] };
  const added = [];
  for (let time = 0; time < 2; time++) {
    const { data } = await client.POST("/v1/queues/{name}/items", { params: { path, header }, body });
    added.push(data?.enqueued);
  }
  const one = await client.POST("/v1/queues/{name}/items", { params: { path }, body: { item: null } });
  const size = await client.GET("/v1/queues/{name}", { params: { path } });
  const front = await client.GET("/v1/queues/{name}/peek", { params: { path } });
  const taken = await client.POST("/v1/queues/{name}/dequeue", { params: { path }, body: { max: 10 } });
  const empty = await client.POST("/v1/queues/{name}/dequeue", { params: { path } });
  const items: unknown[] | undefined = taken.data?.items;
  return {
    added: [...added, one.data?.enqueued],
    size: size.data?.size,
    front: front.data?.items,
    taken: items,
    empty: empty.data?.items,
  };
}

async function leases() {
  const params = { path: { name: "typescript-leased" } };
  await client.POST("/v1/queues/{name}/items", { params, body: { item: { job: 1 } } });
  const seen: unknown[] = [];
  const tokens: string[] = [];
  for (let time = 0; time < 2; time++) {
    const { data } = await client.POST("/v1/queues/{name}/acquire", { params, body: { lease_s: 60 } });
    const lease = data!.leases[0]!;
    seen.push([lease.item, lease.deliveries]);
    tokens.push(lease.token);
    if (time === 0) {
      await client.POST("/v1/queues/{name}/release", { params, body: { tokens } });
    }
  }
  const lost = await client.POST("/v1/queues/{name}/ack", { params, body: { tokens: tokens.slice(0, 1) } });
  await client.POST("/v1/queues/{name}/reject", { params, body: { tokens: tokens.slice(1) } });
  const dead = await client.GET("/v1/queues/{name}/dead-letters", { params });
  const counted = await client.GET("/v1/queues/{name}/leases", { params });
  return {
    seen,
    lost: lost.data?.lost.length === 1 && lost.data.lost[0] === tokens[0],
    reasons: dead.data?.letters.map((each) => each.reason),
    counted: [counted.data?.held, counted.data?.waiting, counted.data?.dead],
  };
}

async function register() {
  const path = { name: "typescript" };
  const swap = async (old: unknown, value: unknown) => {
    const body = { old, new: value };
    const { data } = await client.POST("/v1/registers/{name}/compare-and-set", { params: { path }, body });
    return data?.swapped;
  };
  const swapped = [await swap(null, "ann"), await swap(null, "bob"), await swap("ann", { is: "bob" })];
  const read = await client.GET("/v1/registers/{name}", { params: { path } });
  return { swapped, value: read.data?.value };
}

async function dictionary() {
  const path = { name: "typescript", key: "ada/1 & co" };
  const params = { path };
  const entry = "/v1/dictionaries/{name}/entries/{key}" as const;
  const put = await client.PUT(entry, { params, body: { value: { age: 36 } } });
  const absent = await client.POST(`${entry}/put-if-absent`, { params, body: { value: 0 } });
  const swapped = await client.POST(`${entry}/compare-and-set`, {
    params,
    body: { old: { age: 36 }, new: { age: 37 } },
  });
  const got = await client.GET(entry, { params });
  const all = await client.GET("/v1/dictionaries/{name}", { params: { path: { name: "typescript" } } });
  const kept = await client.POST(`${entry}/compare-and-delete`, { params, body: { old: { age: 36 } } });
  const gone = await client.DELETE(entry, { params });
  const missing = await client.GET(entry, { params });
  return {
    put: put.response.status,
    stored: absent.data?.stored,
    swapped: swapped.data?.swapped,
    value: got.data?.value,
    items: all.data?.items,
    kept: kept.data?.deleted === false,
    deleted: gone.response.status,
    missing: told(missing.error),
  };
}

async function errors() {
  const params = { path: { name: "typescript" }, header: { "Idempotency-Key": "typescript-1" } };
  const reused = await client.POST("/v1/queues/{name}/items", { params, body: { item: "another" } });
  const stranger = await authorised("wrong").GET("/v1/cluster");
  const path = { name: ".hidden" };
  const named = await client.GET("/v1/registers/{name}", { params: { path } });
  return { reused: told(reused.error), stranger: told(stranger.error), named: told(named.error) };
}

async function service() {
  const ready = await client.GET("/v1/health/ready");
  const cluster = await client.GET("/v1/cluster");
  const ids: string[] = (cluster.data?.document.replicas ?? []).map((replica) => replica.id);
  const explained = await client.GET("/problems/{name}", { params: { path: { name: "outcome-unknown" } } });
  return { ready: ready.data?.status, replicas: ids, definite: explained.data?.definite };
}

async function write() {
  const params = { path: { name: "typescript-fate" }, query: { deadline_s } };
  const written = await client.PUT("/v1/registers/{name}", { params, body: { value: "written" } });
  return written.error ? told(written.error) : { status: written.response.status };
}

async function take() {
  const params = { path: { name: "typescript" }, query: { deadline_s } };
  const taken = await client.POST("/v1/queues/{name}/dequeue", { params });
  return taken.error ? told(taken.error) : { items: taken.data.items };
}

// What the types must refuse. It is never called: only the compiler looks at it.
export async function refused() {
  const params = { path: { name: "q" } };
  // @ts-expect-error: neither item nor items
  await client.POST("/v1/queues/{name}/items", { params, body: {} });
  // @ts-expect-error: a number
  await client.POST("/v1/queues/{name}/dequeue", { params, body: { max: "ten" } });
  // @ts-expect-error: the name is missing
  await client.GET("/v1/registers/{name}", { params: { path: {} } });
  // @ts-expect-error: no such path
  await client.GET("/v1/stacks/{name}", { params });
  const swapped = await client.POST("/v1/registers/{name}/compare-and-set", {
    params,
    body: { old: 1, new: 2 },
  });
  // @ts-expect-error: true or false, not a text
  const text: string | undefined = swapped.data?.swapped;
  return text;
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
console.log(JSON.stringify(phase === "all" ? await all() : await few()));
