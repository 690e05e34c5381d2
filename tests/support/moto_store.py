"""Stores of objects in a server of moto (deps/moto.txt), which verifies signatures and rights, and boto3 as their other
client: neither is of this project.
"""

import collections.abc
import http.client
import json
import os
import re
import subprocess
import sys
import threading

import gate
import places
import wheels

wheels.use("moto", "cryptography", "markupsafe", "yaml")
import boto3  # noqa: E402
import botocore.config  # noqa: E402
from boto3.s3.transfer import TransferConfig  # noqa: E402, F401

REGION = "eu-west-1"

# Nothing that the user of this machine has set up for AWS.
for variable in [name for name in os.environ if name.startswith(("AWS_", "MOTO_"))]:
    del os.environ[variable]
os.environ |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}

# It ends when its standard input does: with its test, however that ends.
SERVER = """import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
import moto.server
moto.server.main(["-p", "0"])
"""


class Moto:
    """A process of moto's server; `settings` are environment variables of it."""

    def __init__(self, **settings):
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-c", SERVER],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(wheels.folder("moto"))} | settings,
        )
        self.port = self.read_port()
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.users = 0
        self.iam = self.client("iam", places.Keys("any", "any"))  # nothing is verified yet
        self.root = self.new_user({"Effect": "Allow", "Action": "*", "Resource": "*"})
        self.iam = self.client("iam", self.root)
        self.verify_signatures()

    def read_port(self):
        said = ""
        for line in self.process.stderr:
            said += line
            if match := re.search(r"Running on http://127\.0\.0\.1:(\d+)", line):
                return int(match[1])
        raise AssertionError(f"moto does not start:\n{said}")

    def verify_signatures(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/moto-api/reset-auth", "0")  # requests that may come before
        assert connection.getresponse().status == 200
        connection.close()

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)

    def client(self, service, keys):
        return boto3.client(
            service,
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name=REGION,
            aws_access_key_id=keys.id,
            aws_secret_access_key=keys.secret,
            aws_session_token=keys.token or None,
            config=botocore.config.Config(proxies={}),
        )

    def new_user(self, *statements):
        """The keys of a user with these rights."""
        self.users += 1
        name = f"user-{self.users}"
        self.iam.create_user(UserName=name)
        self.iam.put_user_policy(UserName=name, PolicyName="rights", PolicyDocument=policy(*statements))
        key = self.iam.create_access_key(UserName=name)["AccessKey"]
        return places.Keys(key["AccessKeyId"], key["SecretAccessKey"], owner=name)

    def end(self, keys):
        """Takes the keys of a user away."""
        self.iam.delete_access_key(UserName=keys.owner, AccessKeyId=keys.id)

    def new_session(self, *statements):
        """The keys of a session, with its token, in a role with these rights."""
        self.users += 1
        name = f"role-{self.users}"
        trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
        role = self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))["Role"]["Arn"]
        self.iam.put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=policy(*statements))
        answer = self.client("sts", self.root).assume_role(RoleArn=role, RoleSessionName="tests")["Credentials"]
        return places.Keys(answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"])


def policy(*statements):
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


class Objects(collections.abc.MutableMapping):
    """The objects of a bucket by their keys, as boto3 sees them."""

    def __init__(self, client, bucket):
        self.client, self.bucket = client, bucket

    def __getitem__(self, key):
        try:
            return self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        except self.client.exceptions.NoSuchKey:
            raise KeyError(key) from None

    def __setitem__(self, key, content):
        self.client.put_object(Bucket=self.bucket, Key=key, Body=content)

    def __delitem__(self, key):
        self.client.delete_object(Bucket=self.bucket, Key=key)

    def __iter__(self):
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket):
            for entry in page.get("Contents", []):
                yield entry["Key"]

    def __len__(self):
        return sum(1 for _ in self)


class Store:
    """A new bucket, which programs reach through a gate."""

    region = REGION

    def __init__(self, moto, bucket):
        self.moto = moto
        self.client = moto.client("s3", moto.root)
        self.client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        self.objects = Objects(self.client, bucket)
        self.gate = gate.Gate(moto.port)
        self.url = self.gate.url
        self.writes = self.gate.requests

    def close(self):
        self.gate.close()

    @property
    def uploads(self):
        """The keys of uploads that were begun and neither completed nor aborted."""
        listed = self.client.list_multipart_uploads(Bucket=self.objects.bucket)
        return [upload["Key"] for upload in listed.get("Uploads", [])]
