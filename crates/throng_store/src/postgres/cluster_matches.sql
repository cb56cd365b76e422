-- The rows of matches in a cluster, and their transactions. The crate `throng_cluster` calls and documents them (`MatchRequest`).
-- Functions return 0, or the reason why nothing was changed: 1 the run has ended or is late, 2 another epoch, 3 the role is held, 4 not the
-- matcher, 5 the ticket is gone, 6 a player is queued, 7 the ticket is in a match, 8 the host is late, 9 no such match, 10 some tickets do
-- not wait.
CREATE TABLE cluster_role (
    name TEXT PRIMARY KEY,
    node INTEGER,
    run BIGINT,
    epoch BIGINT NOT NULL DEFAULT 0,
    expires_ms BIGINT NOT NULL DEFAULT 0,
    revision BIGINT NOT NULL DEFAULT 0
);
COMMENT ON COLUMN cluster_role.node IS 'the last holder, together with its run';
COMMENT ON COLUMN cluster_role.epoch IS 'counts how often the role was taken; a request with another epoch is refused';
COMMENT ON COLUMN cluster_role.expires_ms IS 'end of the lease, Unix time of the server; the role of a late node is free at once';
COMMENT ON COLUMN cluster_role.revision IS 'the last revision that a ticket got';
CREATE TABLE cluster_ticket (
    node INTEGER,
    run BIGINT,
    nth BIGINT,
    mode TEXT NOT NULL,
    power BIGINT NOT NULL,
    skill INTEGER NOT NULL,
    level INTEGER NOT NULL,
    leader_strength BIGINT NOT NULL,
    regions BIGINT NOT NULL,
    roles BYTEA NOT NULL,
    avoid BIGINT[] NOT NULL,
    waiting_since_ms BIGINT NOT NULL,
    is_gone BOOLEAN NOT NULL DEFAULT FALSE,
    match_epoch BIGINT,
    match_nth BIGINT,
    revision BIGINT,
    PRIMARY KEY (node, run, nth)
);
COMMENT ON COLUMN cluster_ticket.node IS 'the node that added it; the next column is its run';
COMMENT ON COLUMN cluster_ticket.nth IS 'its number in this run';
COMMENT ON COLUMN cluster_ticket.is_gone IS 'it was cancelled; the row is deleted when the matcher has read that';
COMMENT ON COLUMN cluster_ticket.match_epoch IS 'its match; NULL: it waits';
COMMENT ON COLUMN cluster_ticket.revision IS 'the number of its last change; NULL: the matcher has not read it yet';
CREATE INDEX cluster_ticket_unread ON cluster_ticket (waiting_since_ms, node, run, nth) WHERE revision IS NULL AND match_epoch IS NULL;
CREATE INDEX cluster_ticket_revision ON cluster_ticket (revision) WHERE revision IS NOT NULL;
CREATE INDEX cluster_ticket_gone ON cluster_ticket (revision) WHERE is_gone;
CREATE INDEX cluster_ticket_match ON cluster_ticket (match_epoch, match_nth) WHERE match_epoch IS NOT NULL;
CREATE TABLE cluster_ticket_number (
    node INTEGER PRIMARY KEY,
    run BIGINT NOT NULL,
    nth BIGINT NOT NULL
);
COMMENT ON TABLE cluster_ticket_number IS 'the last ticket of each node; an earlier one can no longer be added';
CREATE TABLE cluster_match_player (
    player BIGINT PRIMARY KEY,
    ticket_node INTEGER,
    ticket_run BIGINT,
    ticket_nth BIGINT,
    place INTEGER NOT NULL,
    home_node INTEGER NOT NULL,
    home_scene TEXT NOT NULL,
    match_epoch BIGINT,
    match_nth BIGINT,
    is_travelling BOOLEAN NOT NULL DEFAULT FALSE
);
COMMENT ON COLUMN cluster_match_player.ticket_node IS 'its ticket; NULL: the player only travels home';
COMMENT ON COLUMN cluster_match_player.place IS 'its place in the ticket';
COMMENT ON COLUMN cluster_match_player.is_travelling IS 'it travels to the node of its match, or home if it is in no match';
CREATE INDEX cluster_match_player_ticket ON cluster_match_player (ticket_node, ticket_run, ticket_nth) WHERE ticket_node IS NOT NULL;
CREATE INDEX cluster_match_player_match ON cluster_match_player (match_epoch, match_nth) WHERE match_epoch IS NOT NULL;
CREATE INDEX cluster_match_player_travelling ON cluster_match_player (player) WHERE is_travelling;
CREATE TABLE cluster_match (
    epoch BIGINT,
    nth BIGINT,
    mode TEXT NOT NULL,
    sides INTEGER NOT NULL,
    ticket_sides INTEGER[] NOT NULL,
    ticket_nodes INTEGER[] NOT NULL,
    ticket_runs BIGINT[] NOT NULL,
    ticket_nths BIGINT[] NOT NULL,
    node INTEGER NOT NULL,
    run BIGINT NOT NULL,
    is_requeued BOOLEAN NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    over_ms BIGINT NOT NULL DEFAULT 0,
    result BYTEA NOT NULL DEFAULT '',
    PRIMARY KEY (epoch, nth)
);
COMMENT ON COLUMN cluster_match.epoch IS 'the epoch of the matcher that formed it';
COMMENT ON COLUMN cluster_match.ticket_sides IS 'the side of each ticket, from 0 on; the tickets are in the next three columns';
COMMENT ON COLUMN cluster_match.node IS 'the node of the match, together with its run';
COMMENT ON COLUMN cluster_match.is_requeued IS 'its tickets wait again if it is aborted';
COMMENT ON COLUMN cluster_match.state IS '0 formed, 1 ready, 2 ended, 3 aborted';
CREATE INDEX cluster_match_open ON cluster_match (epoch, nth) WHERE state < 2;
CREATE INDEX cluster_match_formed ON cluster_match (node, run) WHERE state = 0;
CREATE INDEX cluster_match_over ON cluster_match (over_ms, epoch, nth) WHERE state >= 2;

CREATE FUNCTION cluster_role_is_held(_row cluster_role, _at_ms BIGINT) RETURNS BOOLEAN LANGUAGE sql STABLE AS
    'SELECT (_row).node IS NOT NULL AND cluster_now_ms(_at_ms) < (_row).expires_ms AND cluster_is_alive((_row).node, (_row).run, _at_ms)';

CREATE FUNCTION cluster_take_role(_node INTEGER, _run BIGINT, _name TEXT, _epoch BIGINT, _lease_ms BIGINT, _at_ms BIGINT)
    RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _row cluster_role%ROWTYPE;
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    INSERT INTO cluster_role (name) VALUES (_name) ON CONFLICT DO NOTHING;
    SELECT * INTO _row FROM cluster_role WHERE name = _name FOR UPDATE;
    IF _row.epoch <> _epoch THEN
        RETURN 2;
    END IF;
    IF cluster_role_is_held(_row, _at_ms) AND (_row.node, _row.run) <> (_node, _run) THEN
        RETURN 3;
    END IF;
    UPDATE cluster_role SET node = _node, run = _run, epoch = epoch + 1, expires_ms = cluster_now_ms(_at_ms) + _lease_ms
        WHERE name = _name;
    RETURN 0;
END $$;

CREATE FUNCTION cluster_renew_role(_node INTEGER, _run BIGINT, _name TEXT, _epoch BIGINT, _lease_ms BIGINT, _at_ms BIGINT)
    RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    UPDATE cluster_role SET expires_ms = cluster_now_ms(_at_ms) + _lease_ms
        WHERE name = _name AND node = _node AND run = _run AND epoch = _epoch;
    RETURN CASE WHEN FOUND THEN 0 ELSE 2 END;
END $$;

CREATE FUNCTION cluster_add_ticket(_node INTEGER, _run BIGINT, _nth BIGINT, _mode TEXT, _power BIGINT, _skill INTEGER, _level INTEGER,
    _leader_strength BIGINT, _regions BIGINT, _roles BYTEA, _avoid BIGINT[], _players BIGINT[], _home_nodes INTEGER[],
    _home_scenes TEXT[], _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _is_gone BOOLEAN;
    _last cluster_ticket_number%ROWTYPE;
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    -- Requests of a node are executed one after the other.
    INSERT INTO cluster_ticket_number VALUES (_node, 0, 0) ON CONFLICT DO NOTHING;
    SELECT * INTO _last FROM cluster_ticket_number WHERE node = _node FOR UPDATE;
    SELECT is_gone INTO _is_gone FROM cluster_ticket WHERE node = _node AND run = _run AND nth = _nth;
    IF FOUND THEN
        RETURN CASE WHEN _is_gone THEN 5 ELSE 0 END;
    END IF;
    IF (_run, _nth) <= (_last.run, _last.nth) THEN
        RETURN 5;
    END IF;
    UPDATE cluster_ticket_number SET run = _run, nth = _nth WHERE node = _node;
    PERFORM FROM cluster_match_player WHERE player = ANY(_players);
    IF FOUND THEN
        RETURN 6;
    END IF;
    BEGIN
        -- All transactions insert in the same order, so that they do not deadlock.
        INSERT INTO cluster_match_player (player, ticket_node, ticket_run, ticket_nth, place, home_node, home_scene)
            SELECT player, _node, _run, _nth, place, home_node, home_scene
            FROM unnest(_players, _home_nodes, _home_scenes) WITH ORDINALITY AS new (player, home_node, home_scene, place)
            ORDER BY player < 0, player;
    EXCEPTION WHEN unique_violation THEN
        RETURN 6;
    END;
    INSERT INTO cluster_ticket (node, run, nth, mode, power, skill, level, leader_strength, regions, roles, avoid, waiting_since_ms)
        VALUES (_node, _run, _nth, _mode, _power, _skill, _level, _leader_strength, _regions, _roles, _avoid, cluster_now_ms(_at_ms));
    RETURN 0;
END $$;

-- `_node` and `_run` are the caller. The ticket can be that of another run.
CREATE FUNCTION cluster_cancel_ticket(_node INTEGER, _run BIGINT, _ticket_node INTEGER, _ticket_run BIGINT, _ticket_nth BIGINT,
    _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _row cluster_ticket%ROWTYPE;
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    IF (_node, _run) = (_ticket_node, _ticket_run) THEN
        INSERT INTO cluster_ticket_number AS last VALUES (_ticket_node, _ticket_run, _ticket_nth)
            ON CONFLICT (node) DO UPDATE SET run = EXCLUDED.run, nth = EXCLUDED.nth
            WHERE (last.run, last.nth) < (EXCLUDED.run, EXCLUDED.nth);
    END IF;
    SELECT * INTO _row FROM cluster_ticket WHERE node = _ticket_node AND run = _ticket_run AND nth = _ticket_nth FOR UPDATE;
    IF NOT FOUND OR _row.is_gone THEN
        RETURN 0;
    END IF;
    IF _row.match_epoch IS NOT NULL THEN
        RETURN 7;
    END IF;
    UPDATE cluster_ticket SET is_gone = TRUE, revision = NULL
        WHERE node = _ticket_node AND run = _ticket_run AND nth = _ticket_nth;
    -- Players that travel home continue.
    DELETE FROM cluster_match_player
        WHERE ticket_node = _ticket_node AND ticket_run = _ticket_run AND ticket_nth = _ticket_nth AND NOT is_travelling;
    UPDATE cluster_match_player SET ticket_node = NULL, ticket_run = NULL, ticket_nth = NULL
        WHERE ticket_node = _ticket_node AND ticket_run = _ticket_run AND ticket_nth = _ticket_nth;
    RETURN 0;
END $$;

-- Gives changed tickets a revision, deletes cancelled tickets up to the revision `_after`, and returns the changes after it. The first row
-- has only the result and the time.
CREATE FUNCTION cluster_read_tickets(_node INTEGER, _run BIGINT, _epoch BIGINT, _after BIGINT, _changes_max BIGINT, _at_ms BIGINT)
    RETURNS TABLE (_code INTEGER, _now_ms BIGINT, _revision BIGINT, _ticket cluster_ticket, _players BIGINT[], _home_nodes INTEGER[],
        _home_scenes TEXT[]) LANGUAGE plpgsql AS $$
DECLARE
    _role cluster_role%ROWTYPE;
    _count BIGINT;
BEGIN
    SELECT * INTO _role FROM cluster_role
        WHERE name = 'matcher' AND node = _node AND run = _run AND epoch = _epoch FOR UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 4, cluster_now_ms(_at_ms), NULL::BIGINT, NULL::cluster_ticket, NULL::BIGINT[], NULL::INTEGER[], NULL::TEXT[];
        RETURN;
    END IF;
    -- A locked row is being changed, and gets its revision in a later call. So no change gets a lower revision than one that was read.
    WITH unread AS (
        SELECT node, run, nth, waiting_since_ms FROM cluster_ticket WHERE revision IS NULL AND match_epoch IS NULL
            ORDER BY waiting_since_ms, node, run, nth LIMIT _changes_max FOR UPDATE SKIP LOCKED
    ), numbered AS (
        SELECT node, run, nth, row_number() OVER (ORDER BY waiting_since_ms, node, run, nth) AS place FROM unread
    )
    UPDATE cluster_ticket AS own SET revision = _role.revision + numbered.place FROM numbered
        WHERE own.node = numbered.node AND own.run = numbered.run AND own.nth = numbered.nth;
    GET DIAGNOSTICS _count = ROW_COUNT;
    UPDATE cluster_role SET revision = revision + _count WHERE name = 'matcher';
    DELETE FROM cluster_ticket WHERE is_gone AND revision <= _after;
    RETURN QUERY SELECT 0, cluster_now_ms(_at_ms), NULL::BIGINT, NULL::cluster_ticket, NULL::BIGINT[], NULL::INTEGER[], NULL::TEXT[];
    RETURN QUERY SELECT 0, NULL::BIGINT, own.revision, own, party.players, party.home_nodes, party.home_scenes
        FROM cluster_ticket AS own, LATERAL (
            SELECT array_agg(player ORDER BY place) AS players, array_agg(home_node ORDER BY place) AS home_nodes,
                array_agg(home_scene ORDER BY place) AS home_scenes
            FROM cluster_match_player AS member
            WHERE member.ticket_node = own.node AND member.ticket_run = own.run AND member.ticket_nth = own.nth
        ) AS party
        WHERE own.revision > _after ORDER BY own.revision LIMIT _changes_max;
END $$;

-- Returns 0 or a reason; with 10, also the places of the tickets that do not wait.
CREATE FUNCTION cluster_form_match(_node INTEGER, _run BIGINT, _epoch BIGINT, _nth BIGINT, _mode TEXT, _sides INTEGER,
    _ticket_sides INTEGER[], _ticket_nodes INTEGER[], _ticket_runs BIGINT[], _ticket_nths BIGINT[], _host_node INTEGER, _host_run BIGINT,
    _is_requeued BOOLEAN, _at_ms BIGINT, OUT _code INTEGER, OUT _missing BIGINT[]) LANGUAGE plpgsql AS $$
DECLARE
    _role cluster_role%ROWTYPE;
BEGIN
    SELECT * INTO _role FROM cluster_role WHERE name = 'matcher' FOR UPDATE;
    _code := 0;
    PERFORM FROM cluster_match WHERE epoch = _epoch AND nth = _nth;
    IF FOUND THEN
        RETURN;
    END IF;
    IF ((_role.node, _role.run, _role.epoch) = (_node, _run, _epoch)) IS NOT TRUE THEN
        _code := 4;
        RETURN;
    END IF;
    IF NOT cluster_is_alive(_host_node, _host_run, _at_ms) THEN
        _code := 8;
        RETURN;
    END IF;
    PERFORM FROM cluster_ticket AS own JOIN unnest(_ticket_nodes, _ticket_runs, _ticket_nths) AS new (node, run, nth)
        ON own.node = new.node AND own.run = new.run AND own.nth = new.nth ORDER BY own.node, own.run, own.nth FOR UPDATE OF own;
    SELECT array_agg(place ORDER BY place) INTO _missing
        FROM unnest(_ticket_nodes, _ticket_runs, _ticket_nths) WITH ORDINALITY AS new (node, run, nth, place)
        WHERE NOT EXISTS (SELECT FROM cluster_ticket AS own WHERE own.node = new.node AND own.run = new.run AND own.nth = new.nth
            AND NOT own.is_gone AND own.match_epoch IS NULL);
    IF _missing IS NOT NULL THEN
        _code := 10;
        RETURN;
    END IF;
    INSERT INTO cluster_match (epoch, nth, mode, sides, ticket_sides, ticket_nodes, ticket_runs, ticket_nths, node, run, is_requeued)
        VALUES (_epoch, _nth, _mode, _sides, _ticket_sides, _ticket_nodes, _ticket_runs, _ticket_nths, _host_node, _host_run, _is_requeued);
    UPDATE cluster_ticket AS own SET match_epoch = _epoch, match_nth = _nth, revision = NULL
        FROM unnest(_ticket_nodes, _ticket_runs, _ticket_nths) AS new (node, run, nth)
        WHERE own.node = new.node AND own.run = new.run AND own.nth = new.nth;
    PERFORM FROM cluster_match_player AS own JOIN unnest(_ticket_nodes, _ticket_runs, _ticket_nths) AS new (node, run, nth)
        ON own.ticket_node = new.node AND own.ticket_run = new.run AND own.ticket_nth = new.nth
        ORDER BY own.player < 0, own.player FOR UPDATE OF own;
    UPDATE cluster_match_player AS own SET match_epoch = _epoch, match_nth = _nth
        FROM unnest(_ticket_nodes, _ticket_runs, _ticket_nths) AS new (node, run, nth)
        WHERE own.ticket_node = new.node AND own.ticket_run = new.run AND own.ticket_nth = new.nth;
END $$;

-- The matches that a run must open, with their players and the side of each player.
CREATE FUNCTION cluster_formed_matches(_node INTEGER, _run BIGINT)
    RETURNS TABLE (_match cluster_match, _players BIGINT[], _player_sides INTEGER[]) LANGUAGE sql STABLE AS $$
    SELECT own, array_agg(member.player ORDER BY new.place, member.place) FILTER (WHERE member.player IS NOT NULL),
        array_agg(new.side ORDER BY new.place, member.place) FILTER (WHERE member.player IS NOT NULL)
    FROM cluster_match AS own
    LEFT JOIN LATERAL unnest(own.ticket_sides, own.ticket_nodes, own.ticket_runs, own.ticket_nths)
        WITH ORDINALITY AS new (side, node, run, nth, place) ON TRUE
    LEFT JOIN cluster_match_player AS member
        ON member.ticket_node = new.node AND member.ticket_run = new.run AND member.ticket_nth = new.nth
    WHERE own.node = _node AND own.run = _run AND own.state = 0
    GROUP BY own.epoch, own.nth ORDER BY own.epoch, own.nth
$$;

CREATE FUNCTION cluster_lock_match_players(_epoch BIGINT, _nth BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM cluster_match_player WHERE match_epoch = _epoch AND match_nth = _nth ORDER BY player < 0, player FOR UPDATE;
END $$;

CREATE FUNCTION cluster_match_ready(_node INTEGER, _run BIGINT, _epoch BIGINT, _nth BIGINT, _at_ms BIGINT)
    RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _state INTEGER;
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    SELECT state INTO _state FROM cluster_match WHERE epoch = _epoch AND nth = _nth AND node = _node AND run = _run FOR UPDATE;
    IF NOT FOUND OR _state >= 2 THEN
        RETURN 9;
    END IF;
    IF _state = 0 THEN
        UPDATE cluster_match SET state = 1 WHERE epoch = _epoch AND nth = _nth;
        PERFORM cluster_lock_match_players(_epoch, _nth);
        UPDATE cluster_match_player SET is_travelling = TRUE WHERE match_epoch = _epoch AND match_nth = _nth;
    END IF;
    RETURN 0;
END $$;

-- Ends (2) or aborts (3) a match that is not over. The caller has locked its row.
CREATE FUNCTION cluster_finish_match(_epoch BIGINT, _nth BIGINT, _to_state INTEGER, _at_ms BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    _row cluster_match%ROWTYPE;
BEGIN
    SELECT * INTO _row FROM cluster_match WHERE epoch = _epoch AND nth = _nth;
    UPDATE cluster_match SET state = _to_state, over_ms = cluster_now_ms(_at_ms) WHERE epoch = _epoch AND nth = _nth;
    PERFORM cluster_lock_match_players(_epoch, _nth);
    -- Players travel only to matches that were ready, so only those of a ready match have to go home.
    UPDATE cluster_match_player SET is_travelling = TRUE WHERE match_epoch = _epoch AND match_nth = _nth AND _row.state = 1;
    IF _to_state = 3 AND _row.is_requeued THEN
        UPDATE cluster_match_player SET match_epoch = NULL, match_nth = NULL WHERE match_epoch = _epoch AND match_nth = _nth;
        UPDATE cluster_ticket SET match_epoch = NULL, match_nth = NULL, revision = NULL WHERE match_epoch = _epoch AND match_nth = _nth;
    ELSE
        DELETE FROM cluster_match_player WHERE match_epoch = _epoch AND match_nth = _nth AND NOT is_travelling;
        UPDATE cluster_match_player
            SET match_epoch = NULL, match_nth = NULL, ticket_node = NULL, ticket_run = NULL, ticket_nth = NULL
            WHERE match_epoch = _epoch AND match_nth = _nth;
        DELETE FROM cluster_ticket WHERE match_epoch = _epoch AND match_nth = _nth;
    END IF;
END $$;

-- The node of a match ends (2) or aborts (3) it.
CREATE FUNCTION cluster_close_match(_node INTEGER, _run BIGINT, _epoch BIGINT, _nth BIGINT, _to_state INTEGER, _result BYTEA,
    _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _state INTEGER;
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    SELECT state INTO _state FROM cluster_match WHERE epoch = _epoch AND nth = _nth AND node = _node AND run = _run FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 9;
    END IF;
    IF _state >= 2 THEN
        RETURN CASE WHEN _state = _to_state THEN 0 ELSE 9 END;
    END IF;
    UPDATE cluster_match SET result = _result WHERE epoch = _epoch AND nth = _nth;
    PERFORM cluster_finish_match(_epoch, _nth, _to_state, _at_ms);
    RETURN 0;
END $$;

CREATE FUNCTION cluster_abort_late(_node INTEGER, _run BIGINT, _matches_max BIGINT, _kept_ms BIGINT, _at_ms BIGINT)
    RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _late RECORD;
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    -- Only matches of runs that are marked as dead or are not the newest. A late heartbeat alone is not enough: it may be in progress.
    FOR _late IN
        SELECT epoch, nth FROM cluster_match AS own WHERE state < 2 AND NOT EXISTS (SELECT FROM cluster_node AS alive
                WHERE alive.node = own.node AND alive.run = own.run AND NOT alive.is_dead)
            ORDER BY epoch, nth LIMIT _matches_max FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM cluster_finish_match(_late.epoch, _late.nth, 3, _at_ms);
    END LOOP;
    DELETE FROM cluster_match WHERE (epoch, nth) IN (SELECT epoch, nth FROM cluster_match
        WHERE state >= 2 AND over_ms <= cluster_now_ms(_at_ms) - _kept_ms ORDER BY over_ms, epoch, nth LIMIT _matches_max);
    RETURN 0;
END $$;

-- The travelling players that a run has adopted. Players without a target have arrived, or stay because their home is dead.
CREATE FUNCTION cluster_travels(_node INTEGER, _run BIGINT, _at_ms BIGINT)
    RETURNS TABLE (_player BIGINT, _match_epoch BIGINT, _match_nth BIGINT, _home_node INTEGER, _home_scene TEXT, _to_node INTEGER,
        _to_run BIGINT) LANGUAGE sql STABLE AS $$
    SELECT member.player, member.match_epoch, member.match_nth, member.home_node, member.home_scene,
        coalesce(host.node, home.node), coalesce(host.run, home.run)
    FROM cluster_match_player AS member
    JOIN cluster_player AS own ON own.player = member.player AND own.node = _node AND own.run = _run AND own.is_adopted
    LEFT JOIN cluster_match AS played ON played.epoch = member.match_epoch AND played.nth = member.match_nth
    LEFT JOIN cluster_match AS host
        ON host.epoch = played.epoch AND host.nth = played.nth AND (host.node, host.run) <> (_node, _run)
    LEFT JOIN cluster_node AS home ON member.match_epoch IS NULL AND home.node = member.home_node AND home.node <> _node
        AND NOT home.is_dead AND NOT cluster_is_late(home.heartbeat_ms, _at_ms)
    WHERE member.is_travelling AND (member.match_epoch IS NULL OR played.state = 1)
$$;

CREATE FUNCTION cluster_end_travels(_node INTEGER, _run BIGINT, _players BIGINT[], _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    PERFORM FROM cluster_match_player WHERE player = ANY(_players) ORDER BY player < 0, player FOR UPDATE;
    UPDATE cluster_match_player SET is_travelling = FALSE FROM cluster_travels(_node, _run, _at_ms) AS travel
        WHERE cluster_match_player.player = ANY(_players) AND travel._player = cluster_match_player.player AND travel._to_node IS NULL;
    DELETE FROM cluster_match_player WHERE player = ANY(_players) AND NOT is_travelling AND ticket_node IS NULL;
    RETURN 0;
END $$;

CREATE FUNCTION cluster_rejoin(_node INTEGER, _run BIGINT, _players BIGINT[], _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    PERFORM FROM cluster_match_player WHERE player = ANY(_players) ORDER BY player < 0, player FOR UPDATE;
    UPDATE cluster_match_player AS member SET is_travelling = TRUE FROM cluster_match AS played, cluster_player AS own
        WHERE member.player = ANY(_players) AND played.epoch = member.match_epoch AND played.nth = member.match_nth
            AND played.state = 1 AND (played.node, played.run) <> (_node, _run)
            AND own.player = member.player AND own.node = _node AND own.run = _run AND own.is_adopted;
    RETURN 0;
END $$;
