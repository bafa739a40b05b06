"""The ledger's transitions, as scripts that Redis runs one at a time: each is one round trip and all or nothing.

Every time in the ledger is the Redis server's, so that no worker's clock can move a lease. Keys, below one prefix:

    job:ID        hash: core (what never changes), status, created, started, expires, attempt, fence, result, cancel
    jobs:TENANT   sorted set of a tenant's jobs by time of acceptance
    queued        sorted set of waiting jobs by time of acceptance
    published     sorted set of waiting jobs by the time of their last message
    running       sorted set of claimed jobs by the end of their lease
    expiry        sorted set of ended jobs by the time their results are removed
    inputs        sorted set of input objects by the time nobody needs them any more
    stored        set of input objects whose bytes are in the store
    dying         set of input objects that the sweeper is removing
    link:TOKEN    the job whose outputs this short link serves
    events:ID     channel: a job's status changes and the newest lines of its output
"""

_CLOCK = """
local t = redis.call('TIME')
local now = t[1] + t[2] / 1e6
local P = KEYS[1]
local function tell(id, event) redis.call('PUBLISH', P .. 'events:' .. id, cjson.encode(event)) end
local function close(id, status, result, ttl)
  local job = P .. 'job:' .. id
  redis.call('HSET', job, 'status', status, 'result', result, 'expires', now + ttl)
  redis.call('ZREM', P .. 'queued', id)
  redis.call('ZREM', P .. 'published', id)
  redis.call('ZREM', P .. 'running', id)
  redis.call('ZADD', P .. 'expiry', now + ttl, id)
  tell(id, {status = status})
end
"""

# id, tenant, core, link
ADD = (
    _CLOCK
    + """
local id = ARGV[1]
redis.call('HSET', P .. 'job:' .. id, 'core', ARGV[3], 'status', 'queued', 'created', now, 'attempt', 0, 'fence', 0)
redis.call('ZADD', P .. 'jobs:' .. ARGV[2], now, id)
redis.call('ZADD', P .. 'queued', now, id)
redis.call('ZADD', P .. 'published', now, id)
redis.call('SET', P .. 'link:' .. ARGV[4], id)
"""
)

# id, lease seconds -> {attempt, fence, seconds queued} or nothing
CLAIM = (
    _CLOCK
    + """
local id = ARGV[1]
local job = P .. 'job:' .. id
if redis.call('HGET', job, 'status') ~= 'queued' then return nil end
local attempt = redis.call('HINCRBY', job, 'attempt', 1)
local fence = redis.call('HINCRBY', job, 'fence', 1)
redis.call('HSET', job, 'status', 'running', 'started', now)
redis.call('ZREM', P .. 'queued', id)
redis.call('ZREM', P .. 'published', id)
redis.call('ZADD', P .. 'running', now + ARGV[2], id)
tell(id, {status = 'running'})
return {attempt, fence, tostring(now - redis.call('HGET', job, 'created'))}
"""
)

# lease seconds, then id and fence of each -> 'kept', 'cancel' or 'gone' for each
RENEW = (
    _CLOCK
    + """
local answers = {}
for n = 2, #ARGV, 2 do
  local id, job = ARGV[n], P .. 'job:' .. ARGV[n]
  local answer = 'gone'
  if redis.call('HGET', job, 'fence') == ARGV[n + 1] and redis.call('ZSCORE', P .. 'running', id) then
    redis.call('ZADD', P .. 'running', now + ARGV[1], id)
    answer = redis.call('HGET', job, 'cancel') and 'cancel' or 'kept'
  end
  answers[#answers + 1] = answer
end
return answers
"""
)

# id, fence, status -> whether the claim still holds
MARK = (
    _CLOCK
    + """
local id, job = ARGV[1], P .. 'job:' .. ARGV[1]
if redis.call('HGET', job, 'fence') ~= ARGV[2] or not redis.call('ZSCORE', P .. 'running', id) then return 0 end
redis.call('HSET', job, 'status', ARGV[3])
tell(id, {status = ARGV[3]})
return 1
"""
)

# id, fence, status, result, ttl -> whether the claim still held
FINISH = (
    _CLOCK
    + """
local id, job = ARGV[1], P .. 'job:' .. ARGV[1]
if redis.call('HGET', job, 'fence') ~= ARGV[2] or not redis.call('ZSCORE', P .. 'running', id) then return 0 end
close(id, ARGV[3], ARGV[4], ARGV[5])
return 1
"""
)

# id, fence -> whether the claim still held; the attempt does not count
RELEASE = (
    _CLOCK
    + """
local id, job = ARGV[1], P .. 'job:' .. ARGV[1]
if redis.call('HGET', job, 'fence') ~= ARGV[2] or not redis.call('ZSCORE', P .. 'running', id) then return 0 end
redis.call('HINCRBY', job, 'attempt', -1)
redis.call('HSET', job, 'status', 'queued')
redis.call('ZREM', P .. 'running', id)
redis.call('ZADD', P .. 'queued', redis.call('HGET', job, 'created'), id)
redis.call('ZADD', P .. 'published', 0, id)
tell(id, {status = 'queued'})
return 1
"""
)

# id, result, ttl -> the status that the request met
CANCEL = (
    _CLOCK
    + """
local id, job = ARGV[1], P .. 'job:' .. ARGV[1]
local status = redis.call('HGET', job, 'status')
if status == 'queued' or status == 'awaiting_approval' then close(id, 'cancelled', ARGV[2], ARGV[3]) end
if status == 'running' or status == 'uploading' then
  redis.call('HSET', job, 'cancel', 1)
  tell(id, {cancel = true})
end
return status
"""
)

# id, fence, attempts allowed, result if lost, result if cancelled, ttl
#   -> 'queued', 'lost', 'cancelled', or nothing when the claim is alive
RECLAIM = (
    _CLOCK
    + """
local id, job = ARGV[1], P .. 'job:' .. ARGV[1]
local lease = redis.call('ZSCORE', P .. 'running', id)
if not lease or tonumber(lease) > now or redis.call('HGET', job, 'fence') ~= ARGV[2] then return nil end
if redis.call('HGET', job, 'cancel') then
  close(id, 'cancelled', ARGV[5], ARGV[6])
  return 'cancelled'
end
if tonumber(redis.call('HGET', job, 'attempt')) >= tonumber(ARGV[3]) then
  close(id, 'lost', ARGV[4], ARGV[6])
  return 'lost'
end
redis.call('HSET', job, 'status', 'queued')
redis.call('ZREM', P .. 'running', id)
redis.call('ZADD', P .. 'queued', redis.call('HGET', job, 'created'), id)
redis.call('ZADD', P .. 'published', now, id)
tell(id, {status = 'queued'})
return 'queued'
"""
)

# seconds without a message, how many -> ids to publish again, their time set to now
STRANDED = (
    _CLOCK
    + """
local ids = redis.call('ZRANGEBYSCORE', P .. 'published', '-inf', now - ARGV[1], 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do redis.call('ZADD', P .. 'published', now, id) end
return ids
"""
)

# set, how many -> members whose time has come
DUE = (
    _CLOCK
    + """
return redis.call('ZRANGEBYSCORE', P .. ARGV[1], '-inf', now, 'LIMIT', 0, ARGV[2])
"""
)

# id, seconds that a tombstone stays: the record without its content
FORGET = (
    _CLOCK
    + """
local id, job = ARGV[1], P .. 'job:' .. ARGV[1]
local core = redis.call('HGET', job, 'core')
redis.call('ZREM', P .. 'expiry', id)
if not core then return end
core = cjson.decode(core)
redis.call('ZREM', P .. 'jobs:' .. core.tenant, id)
redis.call('HDEL', job, 'core', 'result')
redis.call('HSET', job, 'tenant', core.tenant, 'gone', 1)
redis.call('EXPIRE', job, ARGV[2])
redis.call('EXPIRE', P .. 'link:' .. core.link, ARGV[2])
"""
)

# ttl, sha256 of each -> 1 where the object is stored and stays for ttl, 0 where it must be put, -1 where it is dying
HOLD = (
    _CLOCK
    + """
local answers = {}
for n = 2, #ARGV do
  local sha, answer = ARGV[n], 0
  if redis.call('SISMEMBER', P .. 'dying', sha) == 1 then
    answer = -1
  else
    redis.call('ZADD', P .. 'inputs', 'GT', now + ARGV[1], sha)
    answer = redis.call('SISMEMBER', P .. 'stored', sha)
  end
  answers[#answers + 1] = answer
end
return answers
"""
)

# how many -> input objects that nobody needs, moved to the dying
DOOM = (
    _CLOCK
    + """
for _, sha in ipairs(redis.call('ZRANGEBYSCORE', P .. 'inputs', '-inf', now, 'LIMIT', 0, ARGV[1])) do
  redis.call('ZREM', P .. 'inputs', sha)
  redis.call('SREM', P .. 'stored', sha)
  redis.call('SADD', P .. 'dying', sha)
end
return redis.call('SRANDMEMBER', P .. 'dying', ARGV[1])
"""
)
